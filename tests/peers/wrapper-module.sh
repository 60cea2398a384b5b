#!/usr/bin/env bash
# wrapper-module.sh VERSION DIR: writes a go.mod into DIR that requires k8s.io/kubernetes and points
# each of its staging modules at the release that was published with it. `go install` refuses a
# module that carries `replace` lines, and Kubernetes' own ones point into its source tree.
set -euo pipefail
version=$1
dir=$2
staging_version="v0.${version#v1.}"

upstream=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^\t"GoMod": "\(.*\)",\{0,1\}$/\1/p')
go_line=$(sed -n 's/^go \(.*\)$/\1/p' "$upstream")

mkdir -p "$dir"
{
    echo "module granary.invalid/peers"
    echo
    echo "go $go_line"
    echo
    echo "require k8s.io/kubernetes $version"
    echo
    echo "replace ("
    sed -n 's#^\t\(k8s.io/[a-z0-9.-]*\) => ./staging/.*#\t\1 => \1 '"$staging_version"'#p' "$upstream"
    echo ")"
} >"$dir/go.mod"
