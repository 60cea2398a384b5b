#!/usr/bin/env bash
# api.sh GRANARY API_BENCH [measure options]: measures etcd + kube-apiserver and our server one after the
# other on this machine, and prints a table of ratios. The numbers are kept in OUT (default: benches/out).
# Without a Go tool chain only ours is measured, and that is said. SIDES="ours" measures again only that
# side and holds it against the numbers kept for the other; the machine should be as quiet as it was then.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
peers=$here/../tests/peers
granary=$(realpath "${1:?usage: api.sh GRANARY API_BENCH [options]}")
bench=$(realpath "${2:?usage: api.sh GRANARY API_BENCH [options]}")
shift 2
options=("$@")
out=${OUT:-$here/out}
mkdir -p "$out"

work=$(mktemp -d)
cleanup() {
    "$peers/stop.sh" "$work/peer" || true
    "$peers/stop-granary.sh" "$work/ours" || true
    rm -rf "$work"
}
trap cleanup EXIT

start_peer() { API_ONLY=1 "$peers/start.sh" "$work/peer"; }
stop_peer() { "$peers/stop.sh" "$work/peer"; }
start_ours() { "$peers/start-granary.sh" "$granary" "$work/ours"; }
stop_ours() { "$peers/stop-granary.sh" "$work/ours"; }

pids() { cat "$work/$1"/*.pid | paste -sd,; }

resident_mib() {
    local pid
    for pid in $(cat "$work/$1"/*.pid); do
        sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$pid/status"
    done | awk '{ sum += $1 } END { print sum / 1024 }'
}

# kill_all SIDE: ends everything at once, as a crash would.
kill_all() {
    local pid
    for pid in $(cat "$work/$1"/*.pid); do
        kill -9 "$pid"
        while [[ -e /proc/$pid/exe ]]; do sleep 0.01; done
    done
    rm "$work/$1"/*.pid
}

# measure SIDE: empty start, load, a start with everything in place, and one after a crash.
measure() {
    local side=$1
    echo "== $side" >&2
    "start_$side" >/dev/null
    local empty
    empty=$(cat "$work/$side/seconds-to-ready")
    # Let what runs once after a start come to rest before memory is called idle.
    sleep 5
    "$bench" measure --kubeconfig "$work/$side/kubeconfig" --pids "$(pids "$side")" "${options[@]}" >"$work/$side.json"
    "stop_$side"
    "start_$side" >/dev/null
    sleep 5
    local full mib
    full=$(cat "$work/$side/seconds-to-ready")
    mib=$(resident_mib "$side")
    kill_all "$side"
    "start_$side" >/dev/null
    jq --argjson empty "$empty" --argjson full "$full" --argjson mib "$mib" --argjson killed "$(cat "$work/$side/seconds-to-ready")" \
        '. + {start_empty_seconds: $empty, start_full_seconds: $full, restarted_mib: $mib, start_killed_seconds: $killed}' \
        "$work/$side.json" >"$out/$side.json"
    "stop_$side"
    rm -rf "${work:?}/$side"
}

sides=${SIDES:-peer ours}
if [[ "$sides" == *peer* ]] && ! "$peers/build.sh" >/dev/null; then
    echo "api.sh: NOT MEASURED: etcd + kube-apiserver" >&2
    sides=ours
    rm -f "$out/peer.json"
fi
for side in $sides; do
    measure "$side"
done
if [[ -f "$out/peer.json" && -f "$out/ours.json" ]]; then
    "$bench" compare "$out/peer.json" "$out/ours.json" | tee "$out/api.txt"
else
    cat "$out"/*.json
fi
