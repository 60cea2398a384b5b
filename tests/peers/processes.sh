# stop_process PIDFILE NAME: ends one process by its id and waits until it is gone. Sourced.
# A pid may have been reused since, so only a process that still has that name is touched.
stop_process() {
    local file=$1 name=$2 pid
    [[ -f "$file" ]] || return 0
    pid=$(cat "$file")
    rm -f "$file"
    [[ "$(cat "/proc/$pid/comm" 2>/dev/null)" == "${name:0:15}" ]] || return 0
    kill "$pid" 2>/dev/null || return 0
    for _ in $(seq 100); do
        # A zombie that its parent has not collected yet has ended, too.
        if ! kill -0 "$pid" 2>/dev/null || grep -qs '^State:.Z' "/proc/$pid/status"; then return 0; fi
        sleep 0.1
    done
    kill -9 "$pid" 2>/dev/null || true
}
