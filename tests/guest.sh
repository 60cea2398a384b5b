#!/usr/bin/env bash
# guest.sh GRANARY: boots a Debian kernel that has ublk in QEMU and plays the story of tests/guest in it: this machine's
# own kernel need have nothing. Exit code 3 means "cannot be run here", with the reason on stderr.
# ACCEL=kvm CPUS=2 makes it faster where that works; KEEP=1 keeps the disk and what the guest said.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
granary=${1:?usage: guest.sh GRANARY}
kernel=$("$here/guest/kernel.sh")

work=$(mktemp -d)
cleanup() {
    if [[ -z "${KEEP-}" ]]; then rm -rf "$work"; else echo "guest: everything is kept in $work" >&2; fi
}
trap cleanup EXIT

"$here/guest/image.sh" "$kernel" "$granary" "$work/disk"
# One processor: emulated ones do not always notice when another changes the kernel's code, which the kernel does.
timeout "${GUEST_TIMEOUT:-600}" qemu-system-x86_64 -accel "${ACCEL:-tcg,thread=multi}" -machine q35 -cpu max -smp "${CPUS:-1}" -m 1024 \
    -nodefaults -nographic -no-reboot -serial stdio -kernel "$kernel/vmlinuz" \
    -append "console=ttyS0 panic=-1 quiet root=/dev/nvme0n1 rw rootwait init=/init" \
    -drive "file=$work/disk,if=none,id=disk,format=raw,cache=unsafe" -device nvme,drive=disk,serial=granary \
    </dev/null | tee "$work/said" || true
grep -q '^GUEST: passed' "$work/said"
