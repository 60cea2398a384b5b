#!/usr/bin/env bash
# Prints the path of a Python that speaks gRPC, kept in the cache with the versions named in versions.sh.
# Exit code 3 means "cannot be had on this machine", with what is missing on stderr.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/versions.sh"

venv="$PEER_DIR/python-grpc-$GRPCIO_VERSION-$PROTOBUF_VERSION"
if [[ ! -e "$venv/complete" ]]; then
    mkdir -p "$PEER_DIR"
    exec 9>"$venv.lock"
    flock 9
    if [[ ! -e "$venv/complete" ]]; then
        rm -rf "$venv"
        if ! python3 -m venv "$venv" >&2; then
            echo "Python's venv is missing: apt-get install python3-venv" >&2
            exit "$EXIT_NOT_AVAILABLE"
        fi
        if ! "$venv/bin/pip" install --quiet --disable-pip-version-check \
            "grpcio==$GRPCIO_VERSION" "protobuf==$PROTOBUF_VERSION" >&2; then
            echo "grpcio $GRPCIO_VERSION and protobuf $PROTOBUF_VERSION cannot be installed" >&2
            exit "$EXIT_NOT_AVAILABLE"
        fi
        touch "$venv/complete"
    fi
fi
echo "$venv/bin/python"
