#!/usr/bin/env bash
# conformance.sh [--record] [GRANARY]: plays the scripted session against a real kube-apiserver with both
# kubectl releases, checks that the recorded transcripts are still what it says, and, given our binary,
# plays it against ours and compares. --record takes the real server's answers as the new record.
# Exit code 3: the real server cannot be had here; what was not run is said on stderr.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/peers/versions.sh"

record=false
if [[ "${1-}" == --record ]]; then
    record=true
    shift
fi
granary=${1-}

"$here/peers/build.sh" >/dev/null || {
    code=$?
    echo "conformance: NOT RUN: the comparison with a real kube-apiserver" >&2
    exit "$code"
}
debian_kubectl=$("$here/peers/kubectl.sh")

work=$(mktemp -d)
cleanup() {
    "$here/peers/stop.sh" "$work/real" || true
    "$here/peers/stop-granary.sh" "$work/ours" || true
    if [[ -z "${KEEP-}" ]]; then rm -rf "$work"; else echo "conformance: everything is kept in $work" >&2; fi
}
trap cleanup EXIT

# check WHAT COMMAND...: notes what failed in a file, because both sides are played at the same time.
check() {
    local what=$1
    shift
    "$@" || echo "$what" >>"$work/failed"
}

# same_as_recorded RELEASE: the real server's answers do not change by themselves, so a difference means
# that the session or the release was changed without a new recording.
same_as_recorded() {
    if $record; then
        rm -rf "$here/kubectl/expected/$1"
        mkdir -p "$here/kubectl/expected/$1"
        cp "$work/real-$1"/*.txt "$here/kubectl/expected/$1/"
        return
    fi
    diff -U 2 -r -x raw -x client "$here/kubectl/expected/$1" "$work/real-$1"
}

# play SIDE RELEASE KUBECTL: the progress of a side goes to its own log, the two would mix.
play() {
    local side=$1 release=$2 kubectl=$3
    echo "conformance: kubectl $release against $side" >&2
    "$here/kubectl/session.sh" "$kubectl" "$work/$side/kubeconfig" "$work/$side-$release" 2>>"$work/$side.log" ||
        { tail -60 "$work/$side.log" >&2; return 1; }
}

play_real() {
    "$here/peers/start.sh" "$work/real" >/dev/null
    check "session (real, 1.20)" play real 1.20 "$debian_kubectl"
    check "session (real, 1.36)" play real 1.36 "$PEER_DIR/kubectl"
    "$here/peers/stop.sh" "$work/real"
}

play_ours() {
    "$here/peers/start-granary.sh" "$granary" "$work/ours" >/dev/null
    check "session (ours, 1.20)" play ours 1.20 "$debian_kubectl"
    check "session (ours, 1.36)" play ours 1.36 "$PEER_DIR/kubectl"
    "$here/peers/stop-granary.sh" "$work/ours"
}

touch "$work/failed"
# A session waits more than it works, so the two sides are played at the same time.
if [[ -n "$granary" ]]; then
    check "our server" play_ours &
fi
check "the real server" play_real
wait
for release in 1.20 1.36; do
    check "recorded transcripts of $release" same_as_recorded "$release"
    if [[ -n "$granary" ]]; then
        check "comparison with $release" "$here/kubectl/compare.sh" "$work/real-$release" "$work/ours-$release"
    fi
done

if [[ -s "$work/failed" ]]; then
    sed 's/^/conformance: FAILED: /' "$work/failed" >&2
    exit 1
fi
echo "conformance: all agree" >&2
