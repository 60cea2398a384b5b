#!/usr/bin/env bash
# stop.sh DIR: ends what start.sh DIR started, by process id, the API server before its store.
set -euo pipefail
dir=${1:?usage: stop.sh DIR}

for name in kube-controller-manager kube-apiserver etcd; do
    [[ -f "$dir/$name.pid" ]] || continue
    pid=$(cat "$dir/$name.pid")
    # A pid may have been reused after a reboot; only end the program that the file names.
    if [[ "$(cat "/proc/$pid/comm" 2>/dev/null)" == "${name:0:15}" ]]; then
        kill "$pid" 2>/dev/null || true
        for _ in $(seq 100); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -9 "$pid" 2>/dev/null || true
    fi
    rm -f "$dir/$name.pid"
done
