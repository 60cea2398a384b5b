#!/usr/bin/env bash
# session.sh KUBECTL KUBECONFIG OUTDIR [STEP...]: plays the scripted session against one API server and
# writes a transcript per step into OUTDIR (normalised) and OUTDIR/raw (as it was).
# It knows nothing about the server it talks to; compare.sh judges the transcripts.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if (($# < 3)); then
    echo "usage: session.sh KUBECTL KUBECONFIG OUTDIR [STEP...]" >&2
    exit 2
fi
for tool in jq curl diff timeout; do
    command -v "$tool" >/dev/null || { echo "session: $tool is missing; apt-get install jq curl diffutils coreutils" >&2; exit 3; }
done

program=$(command -v "$1")
KUBECONFIG=$(realpath "$2")
mkdir -p "$3/raw"
OUTDIR=$(realpath "$3")
shift 3
MANIFESTS=$here/manifests

# The session's own home: discovery that another run or another server left behind must not leak in.
HOME=$(mktemp -d)
trap 'rm -rf "$HOME"' EXIT
# The server records the client under the name of its program, so that is always the same.
program=$(realpath "$program")
mkdir "$HOME/bin"
ln -s "$program" "$HOME/bin/kubectl"
KUBECTL_PROGRAM=$HOME/bin/kubectl
KUBECTL_MINOR=$("$KUBECTL_PROGRAM" version --client -o json | jq -r '.clientVersion.minor | gsub("[^0-9]"; "") | tonumber')
SERVER_URL=$("$KUBECTL_PROGRAM" --kubeconfig "$KUBECONFIG" config view --minify --raw -o jsonpath='{.clusters[0].cluster.server}')
TOKEN=$("$KUBECTL_PROGRAM" --kubeconfig "$KUBECONFIG" config view --minify --raw -o jsonpath='{.users[0].user.token}')
echo "1.$KUBECTL_MINOR" >"$OUTDIR/client"
export HOME KUBECTL_PROGRAM KUBECTL_MINOR KUBECONFIG OUTDIR MANIFESTS SERVER_URL TOKEN
export LC_ALL=C TZ=UTC

steps=()
if (($#)); then
    for wanted in "$@"; do
        steps+=("$here/steps/${wanted%.sh}.sh")
    done
else
    steps=("$here"/steps/*.sh)
    rm -f "$OUTDIR"/*.txt "$OUTDIR"/raw/*.txt
fi

failed=()
for file in "${steps[@]}"; do
    name=$(basename "$file" .sh)
    raw=$OUTDIR/raw/$name.txt
    printf '%-24s' "$name" >&2
    started=$SECONDS
    if STEP=$name bash -euo pipefail -c '. "$1/lib.sh"; . "$2"' step "$here" "$file"; then
        if [[ -f "$raw" ]]; then echo "$((SECONDS - started)) s" >&2; else echo "not for kubectl 1.$KUBECTL_MINOR" >&2; fi
    else
        echo "BROKE OFF (see $raw)" >&2
        failed+=("$name")
    fi
    if [[ -f "$raw" ]]; then
        sed -E -f "$here/normalise.sed" "$raw" | awk -f "$here/order.awk" >"$OUTDIR/$name.txt"
    fi
done
if ((${#failed[@]})); then
    echo "session: steps that broke off: ${failed[*]}" >&2
    exit 1
fi
