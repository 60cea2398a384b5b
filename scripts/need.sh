#!/usr/bin/env bash
# need.sh PROGRAM...: makes sure that these programs are there. On Debian, root gets what is missing from
# apt; everybody else is told the one command to run. Says nothing when nothing is missing.
set -euo pipefail

packages=()
components=()

# Which package brings a program whose name it does not share.
package_of() {
    case $1 in
        busybox) echo busybox-static ;;
        cc) echo gcc libc6-dev ;;
        depmod) echo kmod ;;
        diff) echo diffutils ;;
        glusterd) echo glusterfs-server ;;
        ip) echo iproute2 ;;
        mkfs.ext4) echo e2fsprogs ;;
        mkfs.xfs) echo xfsprogs ;;
        nsenter) echo util-linux ;;
        pip3) echo python3-pip ;;
        nbdinfo | nbdcopy) echo libnbd-bin ;;
        qemu-img | qemu-io) echo qemu-utils ;;
        blkdiscard | blockdev | fstrim) echo util-linux ;;
        qemu-system-x86_64) echo qemu-system-x86 ;;
        qemu-storage-daemon) echo qemu-system-common ;;
        strip) echo binutils ;;
        xz) echo xz-utils ;;
        *) echo "$1" ;;
    esac
}

for program in "$@"; do
    case $program in
        cargo)
            command -v cargo >/dev/null || {
                echo "Rust is missing; https://rustup.rs says how to install it" >&2
                exit 1
            }
            ;;
        rustfmt) cargo fmt --version >/dev/null 2>&1 || components+=(rustfmt) ;;
        clippy) cargo clippy --version >/dev/null 2>&1 || components+=(clippy) ;;
        *) command -v "$program" >/dev/null || read -ra packages < <(echo "${packages[@]}" "$(package_of "$program")") ;;
    esac
done

if ((${#components[@]})); then
    command -v rustup >/dev/null || {
        echo "missing parts of Rust: ${components[*]}; install them the way Rust was installed" >&2
        exit 1
    }
    rustup component add "${components[@]}"
fi

((${#packages[@]})) || exit 0
if ! command -v apt-get >/dev/null; then
    echo "missing: ${packages[*]} (names of Debian's packages); install them and try again" >&2
    exit 1
fi
if [[ $(id -u) -ne 0 ]]; then
    echo "missing: ${packages[*]}; install them with" >&2
    echo "    sudo apt-get update && sudo apt-get install ${packages[*]}" >&2
    exit 1
fi
echo "installing ${packages[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq -y --no-install-recommends -o DPkg::Lock::Timeout=300 "${packages[@]}" >/dev/null
