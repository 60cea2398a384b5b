#!/usr/bin/env bash
# Prints the directory of an unpacked Debian kernel that has ublk: the cloud kernel of the backports, because none of
# the release's own has it. Nothing is installed, and apt's own lists and sources stay as they are.
# Exit code 3 means "cannot be had on this machine", with the reason on stderr.
set -euo pipefail

cache="${GRANARY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/granary}/guest"
suite=bookworm-backports
# Debian 12's QEMU emulates this one well, and runs later ones of the series into random faults while they boot.
preferred=linux-image-6.12.43+deb12-cloud-amd64
newest=linux-image-cloud-amd64

if [[ -e "$cache/kernel/complete" ]]; then
    echo "$cache/kernel"
    exit
fi
not_available() {
    echo "guest: $*" >&2
    exit 3
}
command -v apt-get >/dev/null || not_available "this machine has no apt to get a kernel with"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[[ -r "$keyring" ]] || not_available "apt-get install debian-archive-keyring"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/deb"
# Wherever this machine gets its own packages from, the backports are too.
mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' |
    awk -v release="${suite%-backports}" '$1 == release { print $2; exit }')
[[ -n "$mirror" ]] || not_available "apt knows no source of ${suite%-backports}; is this Debian 12, after apt-get update?"
echo "deb [arch=amd64 signed-by=$keyring] $mirror $suite main" >"$work/sources.list"
options=(-qq -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
download() { (cd "$work/deb" && apt-get "${options[@]}" download "$1"); }
# The package behind the one that only names the newest.
image_of() { apt-cache "${options[@]}" depends "$1" | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | head -n 1; }
{
    apt-get "${options[@]}" update && { download "$preferred" || download "$(image_of "$newest")"; }
} >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    not_available "no kernel from $suite; is there a network?"
}

rm -rf "$cache/kernel"
mkdir -p "$cache"
dpkg-deb -x "$work"/deb/*.deb "$work/kernel"
cp "$work"/kernel/boot/vmlinuz-* "$work/kernel/vmlinuz"
modules=("$work"/kernel/lib/modules/*)
[[ -e "${modules[0]}/kernel/drivers/block/ublk_drv.ko.xz" ]] || not_available "${modules[0]##*/} has no ublk_drv"
touch "$work/kernel/complete"
cp -a "$work/kernel" "$cache/kernel"
echo "$cache/kernel"
