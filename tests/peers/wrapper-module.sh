#!/usr/bin/env bash
# wrapper-module.sh MODULE VERSION DIR [STAGING]: writes a go.mod into DIR that requires MODULE, so that
# its programs can be built from the module proxy. `go install` refuses modules whose go.mod replaces
# others by directories of their own source tree; those are pointed at the published STAGING version.
set -euo pipefail
module=$1
version=$2
dir=$3
staging=${4-}

upstream=$(go mod download -json "$module@$version" | sed -n 's/^\t"GoMod": "\(.*\)",\{0,1\}$/\1/p')

mkdir -p "$dir"
{
    echo "module granary.invalid/peers"
    echo
    sed -n '/^go /p' "$upstream"
    echo
    echo "require $module $version"
    if [[ -n "$staging" ]]; then
        echo
        echo "replace ("
        sed -n 's#^\t\([^ ]*\) => \./staging/.*#\t\1 => \1 '"$staging"'#p' "$upstream"
        echo ")"
    fi
} >"$dir/go.mod"
