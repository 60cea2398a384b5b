#!/usr/bin/env bash
# kubectl.sh GRANARY: plays the scripted session with Debian's kubectl against our server and holds it
# against the recorded answers of a real one. Needs neither Go nor a real API server.
# For a closer look: kubectl.sh GRANARY STEP... plays single steps; KEEP=1 keeps everything.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
granary=${1:?usage: kubectl.sh GRANARY [STEP...]}
shift
kubectl=$("$here/peers/kubectl.sh")

work=$(mktemp -d)
cleanup() {
    "$here/peers/stop-granary.sh" "$work/ours" || true
    if [[ -z "${KEEP-}" ]]; then rm -rf "$work"; else echo "kubectl: everything is kept in $work" >&2; fi
}
trap cleanup EXIT

"$here/peers/start-granary.sh" "$granary" "$work/ours" >/dev/null
# What a step that broke off has left behind is still worth comparing.
verdict=0
"$here/kubectl/session.sh" "$kubectl" "$work/ours/kubeconfig" "$work/out" "$@" || verdict=1
"$here/kubectl/compare.sh" "$here/kubectl/expected/1.20" "$work/out" "$@" || verdict=1
exit "$verdict"
