# The three systems that block.sh measures: starting and ending them, their processes, and how fio reaches
# each. Sourced; needs $work (a directory on the disk that is measured), $granary, $size (MiB) and $realtime.
# All three promise the same: an acknowledged write is with the operating system of every copy, a flushed one on
# its disk.

# Children of the script, by name; a child that was not waited for yet keeps its process id.
declare -A child=()
gluster_host=

# await_line FILE PATTERN NAME: until a line of the file matches, as long as that child lives.
await_line() {
    local deadline=$((SECONDS + 60))
    until grep -qs "$2" "$1"; do
        if ((SECONDS > deadline)) || ! kill -0 "${child[$3]}" 2>/dev/null; then
            echo "block.sh: $3 did not come up:" >&2
            tail -n 5 "$work/$3.log" >&2
            return 1
        fi
        sleep 0.02
    done
}

# alone COMMAND...: in place of the shell that calls it, in a session of its own. The kernel shares the processor out
# among sessions first (autogroup), and Gluster's daemons each begin one: without this Gluster would get five shares of
# a busy machine and everybody else together one.
alone() {
    if [[ -n "$realtime" ]]; then
        exec setsid chrt --rr 1 "$@"
    fi
    exec setsid "$@"
}

stop_child() {
    [[ -v child[$1] ]] || return 0
    kill "${child[$1]}" 2>/dev/null || true
    wait "${child[$1]}" 2>/dev/null || true
    unset "child[$1]"
}

# ---- ours: three replicas and an engine

start_ours() {
    local i replicas=()
    head -c 32 /dev/urandom | base64 >"$work/key"
    chmod 600 "$work/key"
    for i in 1 2 3; do
        alone "$granary" replica --dir "$work/ours/r$i" --size "${size}MiB" --listen 127.0.0.1:0 --key-file "$work/key" \
            >"$work/replica$i.out" 2>"$work/replica$i.log" &
        child[replica$i]=$!
    done
    for i in 1 2 3; do
        await_line "$work/replica$i.out" '^ready' "replica$i"
        replicas+=(--replica "$(awk '/^ready/ { print $2 }' "$work/replica$i.out")")
    done
    alone "$granary" engine --volume bench --size "${size}MiB" --key-file "$work/key" "${replicas[@]}" \
        --frontend "nbd+unix://$work/ours.sock" --control "unix://$work/control.sock" \
        >"$work/engine.out" 2>"$work/engine.log" &
    child[engine]=$!
    await_line "$work/engine.out" '^ready' engine
}

# A volume that lost a replica writes less than it promises; its numbers would be lies.
check_ours() {
    local in_sync
    in_sync=$("$granary" engine-ctl --control "unix://$work/control.sock" replica list -o json |
        jq '[.. | select(. == "inSync")] | length')
    if [[ "$in_sync" != 3 ]]; then
        echo "block.sh: only $in_sync of our 3 replicas are in sync; see the engine's log:" >&2
        tail -n 5 "$work/engine.log" >&2
        return 1
    fi
}

stop_ours() {
    local name
    for name in engine replica1 replica2 replica3; do stop_child "$name"; done
}

pids_ours() { echo "${child[engine]} ${child[replica1]} ${child[replica2]} ${child[replica3]}"; }

reach_ours() { echo "--ioengine=nbd --uri=nbd+unix:///?socket=$work/ours.sock"; }

# ---- qsd: one copy, a raw file behind qemu-storage-daemon

start_qsd() {
    mkdir -p "$work/qsd"
    truncate -s "${size}M" "$work/qsd/disk"
    alone qemu-storage-daemon \
        --blockdev "driver=file,node-name=disk,filename=$work/qsd/disk,cache.direct=on,aio=native" \
        --nbd-server "addr.type=unix,addr.path=$work/qsd.sock" \
        --export type=nbd,id=export,node-name=disk,name=disk,writable=on --pidfile "$work/qsd.ready" \
        >"$work/qsd.log" 2>&1 &
    child[qsd]=$!
    await_line "$work/qsd.ready" . qsd
}

check_qsd() { :; }
stop_qsd() { stop_child qsd; }
pids_qsd() { echo "${child[qsd]}"; }
reach_qsd() { echo "--ioengine=nbd --uri=nbd+unix:///disk?socket=$work/qsd.sock"; }

# ---- gluster: three bricks, one glusterd

gluster_() { gluster --glusterd-sock="$work/glusterd.sock" --log-file="$work/gluster-cli.log" --mode=script "$@"; }

# An address of its own, so that another glusterd on this machine is not disturbed.
start_gluster() {
    local i bricks=() brick_dir=$work/gluster
    gluster_host=127.$((RANDOM % 100 + 100)).$((RANDOM % 250 + 1)).1
    mkdir -p "$work"/glusterd/{work,run,log}
    for i in 1 2 3; do
        mkdir -p "$brick_dir/b$i"
        bricks+=("$gluster_host:$brick_dir/b$i")
    done
    cat >"$work/glusterd/glusterd.vol" <<END
volume management
    type mgmt/glusterd
    option working-directory $work/glusterd/work
    option run-directory $work/glusterd/run
    option glusterd-sockfile $work/glusterd.sock
    option cluster-test-mode $work/glusterd/log
    option transport-type socket
    option transport.socket.bind-address $gluster_host
    option transport.socket.listen-port 24007
    option transport.socket.keepalive-time 10
    option transport.socket.keepalive-interval 2
    option ping-timeout 0
    option base-port 49152
    option max-port 49252
end-volume
END
    glusterd -f "$work/glusterd/glusterd.vol" -p "$work/glusterd/run/glusterd.pid" -l "$work/gluster.log"
    for _ in $(seq 200); do
        gluster_ volume list >/dev/null 2>&1 && break
        sleep 0.1
    done
    # Several bricks on one host and on the root file system want to be asked for by force.
    gluster_ volume create bench replica 3 "${bricks[@]}" force >/dev/null
    # What Gluster's own recommendation for disk images says …
    gluster_ volume set bench group virt >/dev/null
    # … but a client that answers a write before the bricks have it would promise less than the others do.
    gluster_ volume set bench performance.write-behind off >/dev/null
    gluster_ volume set bench performance.flush-behind off >/dev/null
    gluster_ volume start bench >/dev/null
    [[ -n "$realtime" ]] || return 0
    local pid
    for pid in $(pids_gluster); do chrt --all-tasks --rr -p 1 "$pid"; done
}

check_gluster() {
    local online
    online=$(gluster_ --xml volume status bench | grep -c '<status>1</status>')
    # Three bricks and the daemon that heals.
    if ((online < 4)); then
        echo "block.sh: only $online of Gluster's 4 processes are online" >&2
        return 1
    fi
}

pids_gluster() {
    local file pid
    while read -r file; do
        pid=$(cat "$file")
        # It daemonises, so nothing but its name says that the number is still the right process.
        [[ "$(cat "/proc/$pid/comm" 2>/dev/null)" == gluster* ]] && echo "$pid"
    done < <(find "$work/glusterd/run" -name '*.pid' 2>/dev/null)
}

# Of fio's two engines for it, the synchronous one is the faster for single reads only. A flush of NBD is an
# fdatasync at the other two, so Gluster need not do more.
reach_gluster() {
    local options=--ioengine=gfapi_async
    [[ "$1" == randread-1 ]] && options=--ioengine=gfapi
    [[ "$1" == write-flush-1 ]] && options+=" --fsync=0 --fdatasync=1"
    echo "$options --volume=bench --brick=$gluster_host --filename=disk --size=${size}m"
}

stop_gluster() {
    local pids pid socket
    pids=$(pids_gluster)
    [[ -n "$pids" ]] || return 0
    for pid in $pids; do
        # Its sockets are not where its other files are.
        socket=$(tr '\0' '\n' <"/proc/$pid/cmdline" | sed -n '/^-S$/{n;p}')
        kill "$pid" 2>/dev/null || true
        rm -f "$socket"
    done
    for _ in $(seq 100); do
        [[ -n "$(pids_gluster)" ]] || break
        sleep 0.1
    done
    for pid in $(pids_gluster); do kill -9 "$pid" 2>/dev/null || true; done
    rm -f /tmp/fio_gfapi.log
}
