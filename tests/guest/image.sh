#!/usr/bin/env bash
# image.sh KERNEL GRANARY IMAGE: makes the disk a guest boots from: busybox, the programs of the story with their
# libraries, two kernel modules, and granary. Needs no root.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kernel=$1
granary=$2
image=$3

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,dev,lib64,mnt,proc,run,sys,tmp,sbin,etc}

# A program, under its own name, and the libraries it is linked with.
add() {
    local program library
    program=$(command -v "$1")
    install -m 755 "$program" "$root/bin/${1##*/}"
    while read -r library; do
        [[ -e "$root$library" ]] || install -D -m 755 "$library" "$root$library"
    done < <(ldd "$program" 2>/dev/null | grep -o '/[^ ]*' || true)
}

add busybox
for applet in $("$root/bin/busybox" --list); do
    [[ -e "$root/bin/$applet" ]] || ln -s busybox "$root/bin/$applet"
done
for program in mkfs.ext4 e2fsck fstrim blkdiscard blockdev fio; do
    rm -f "$root/bin/$program"
    add "$program"
done
add "$granary"
strip "$root/bin/granary"
ln -sf ../bin/busybox "$root/sbin/modprobe"

release=$(basename "$kernel"/lib/modules/*)
for module in ublk_drv loop; do
    found=$(find "$kernel/lib/modules" -name "$module.ko.xz")
    target="$root/lib/modules/$release/kernel/${found##*/kernel/}"
    mkdir -p "$(dirname "$target")"
    xz -dc "$found" >"${target%.xz}"
done
cp "$kernel/lib/modules/$release"/modules.{builtin,builtin.modinfo,order} "$root/lib/modules/$release/"
depmod -b "$root" "$release"

install -m 755 "$here/init" "$root/init"
install -m 755 "$here/story.sh" "$here/lib.sh" "$root/"
rm -f "$image"
truncate -s 2G "$image"
mke2fs -q -t ext4 -d "$root" "$image"
