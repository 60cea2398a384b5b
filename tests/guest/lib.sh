# What a story in the guest is told with. For busybox's shell; sourced by the story.

# Busybox has programs of these names, too, and would run its own.
blkdiscard() { /bin/blkdiscard "$@"; }
blockdev() { /bin/blockdev "$@"; }
fstrim() { /bin/fstrim "$@"; }

# Says what has just been seen.
seen() { echo "ok: $* ($(seconds) s)"; }

# Ends the story, with what the processes said.
fail() {
    echo "NOT ok: $*"
    for log in /run/*.log; do
        echo "--- $log"
        tail -n 40 "$log"
    done
    echo "--- kernel"
    dmesg | tail -n 40
    exit 1
}

seconds() { cut -d. -f1 /proc/uptime; }

# until_true SECONDS COMMAND...: waits until the command succeeds.
until_true() {
    local end=$(($(seconds) + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$(seconds)" -lt "$end" ] || return 1
        sleep 0.2
    done
}

# start NAME COMMAND...: runs it in the background until it says that it is ready. Its process is in /run/NAME.pid.
start() {
    local name=$1
    shift
    "$@" >"/run/$name.out" 2>>"/run/$name.log" &
    echo $! >"/run/$name.pid"
    until_true 120 grep -q ^ready "/run/$name.out" || fail "$name did not become ready"
}

pid() { cat "/run/$1.pid"; }
is_gone() { ! kill -0 "$(pid "$1")" 2>/dev/null; }

# stop NAME: asks it to end, and waits until it has.
stop() {
    kill "$(pid "$1")"
    wait "$(pid "$1")" || fail "$1 ended with $?"
}

replica() {
    start "replica$1" granary replica --dir "/replica$1" --size "$SIZE" --listen "127.0.0.1:950$1" --key-file key
}

# engine NAME FRONTEND [FLAG...]
engine() {
    local name=$1 frontend=$2
    shift 2
    start "$name" granary engine --volume demo --key-file key --control "unix:///run/$name.sock" --run-dir /run/granary \
        --replica 127.0.0.1:9501 --replica 127.0.0.1:9502 --replica 127.0.0.1:9503 --frontend "$frontend" "$@"
}

ctl() {
    local name=$1
    shift
    granary engine-ctl --control "unix:///run/$name.sock" "$@"
}

# The device that the link leads to.
device() { readlink /dev/granary/demo; }

nothing_is_left() {
    [ -z "$(ls /sys/class/ublk-char 2>/dev/null)" ] || fail "a ublk device is left: $(ls /sys/class/ublk-char)"
    [ ! -e /dev/ublkb0 ] || fail "/dev/ublkb0 is left"
    [ ! -L /dev/granary/demo ] || fail "the link is left"
    ! grep -q granary /proc/mounts || fail "a mount is left"
}

# The kernel complained about nothing.
kernel_is_content() {
    ! dmesg | grep -E 'WARNING:|BUG:|I/O error|hung_task|blocked for more' || fail "the kernel complains"
}
