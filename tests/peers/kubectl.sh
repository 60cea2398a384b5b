#!/usr/bin/env bash
# Prints the path of Debian's kubectl (package kubernetes-client). If the package is not installed
# its program is unpacked into the cache: /usr/bin/kubectl may belong to somebody else's package.
# Exit code 3 means "cannot be had on this machine", with what to install on stderr.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/versions.sh"

if [[ "$(dpkg-query -W -f '${db:Status-Status}' kubernetes-client 2>/dev/null)" == installed ]]; then
    echo /usr/bin/kubectl
    exit
fi
target="$PEER_DIR/kubectl-debian"
[[ -x "$target" ]] || "$here/debian-binary.sh" kubernetes-client usr/bin/kubectl "$target"
echo "$target"
