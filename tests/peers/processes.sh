# Waiting for servers and ending them, by process id. Sourced.

# await NAME DIR COMMAND...: until the command succeeds, as long as the process of DIR/NAME.pid lives.
await() {
    local name=$1 dir=$2 deadline=$((SECONDS + 120))
    shift 2
    until "$@" >/dev/null 2>&1; do
        if ((SECONDS > deadline)) || ! kill -0 "$(cat "$dir/$name.pid")" 2>/dev/null; then
            echo "peers: $name did not come up; its log is $dir/$name.log" >&2
            return 1
        fi
        sleep 0.02
    done
}

# seconds_since NANOSECONDS, as `date +%s%N` told them.
seconds_since() { awk -v from="$1" -v now="$(date +%s%N)" 'BEGIN { printf "%.2f\n", (now - from) / 1e9 }'; }

# stop_process DIR NAME: ends one process and waits until it is gone.
# A pid may have been reused since, so only a process that still has that name is touched.
stop_process() {
    local file=$1/$2.pid name=$2 pid
    [[ -f "$file" ]] || return 0
    pid=$(cat "$file")
    rm -f "$file"
    [[ "$(cat "/proc/$pid/comm" 2>/dev/null)" == "${name:0:15}" ]] || return 0
    kill "$pid" 2>/dev/null || return 0
    for _ in $(seq 200); do
        # A zombie that its parent has not collected yet has ended, too.
        if ! kill -0 "$pid" 2>/dev/null || grep -qs '^State:.Z' "/proc/$pid/status"; then return 0; fi
        sleep 0.1
    done
    kill -9 "$pid" 2>/dev/null || true
}
