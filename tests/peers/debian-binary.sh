#!/usr/bin/env bash
# debian-binary.sh PACKAGE PATH TARGET: takes one program out of a Debian package without installing
# the package: no service gets started and nobody else's file of that name is touched.
set -euo pipefail
package=$1
path=$2
target=$3

if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    echo "$package: this machine has no apt; install the program $(basename "$path") by hand" >&2
    exit 3
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cd "$work"
download() { apt-get download -qq "$package" >/dev/null 2>"$work/apt.log"; }
if ! download; then
    # A fresh machine has no package lists yet, and only root may fetch them.
    if [[ $(id -u) -ne 0 ]]; then
        cat "$work/apt.log" >&2
        echo "$package: could not be downloaded; as root: apt-get update && apt-get install $package" >&2
        exit 3
    fi
    apt-get update -qq >/dev/null 2>&1 || true
    download || { cat "$work/apt.log" >&2; exit 3; }
fi
dpkg-deb -x ./*.deb "$work/root"
mkdir -p "$(dirname "$target")"
install -m 755 "$work/root/$path" "$target"
