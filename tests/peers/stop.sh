#!/usr/bin/env bash
# stop.sh DIR: ends what start.sh DIR started, the API server before its store.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/processes.sh"
dir=${1:?usage: stop.sh DIR}
for name in kube-controller-manager kube-apiserver etcd; do
    stop_process "$dir" "$name"
done
