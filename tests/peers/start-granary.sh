#!/usr/bin/env bash
# start-granary.sh BINARY DIR: starts our server on a free loopback port with its data in DIR/data, and
# returns when it answers. DIR/kubeconfig has a context `reader`, as the one of the real server has;
# DIR/seconds-to-ready says how long it took. stop-granary.sh DIR ends it again.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/ports.sh"
. "$here/processes.sh"
binary=$(realpath "${1:?usage: start-granary.sh BINARY DIR}")
dir=${2:?usage: start-granary.sh BINARY DIR}
kubectl=$("$here/kubectl.sh")
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
port=$(free_port)

started=$(date +%s%N)
setsid "$binary" --data-dir "$dir/data" up --listen "127.0.0.1:$port" >"$dir/granary.log" 2>&1 </dev/null &
echo $! >"$dir/granary.pid"
if ! await granary "$dir" curl -fsk "https://127.0.0.1:$port/readyz"; then
    tail -20 "$dir/granary.log" >&2
    "$here/stop-granary.sh" "$dir"
    exit 1
fi
seconds_since "$started" >"$dir/seconds-to-ready"

umask 077
if [[ ! -f "$dir/reader-token" ]]; then
    "$binary" --data-dir "$dir/data" token create reader --role read-only >"$dir/reader-token" 2>/dev/null
fi
# Written by hand: Debian's kubectl crashes in `config set-context`.
ours() { "$kubectl" --kubeconfig "$dir/data/kubeconfig" config view --raw -o jsonpath="$1"; }
cat >"$dir/kubeconfig" <<KUBECONFIG
apiVersion: v1
kind: Config
clusters:
- name: ours
  cluster:
    server: $(ours '{.clusters[0].cluster.server}')
    certificate-authority-data: $(ours '{.clusters[0].cluster.certificate-authority-data}')
users:
- name: admin
  user: {token: $(ours '{.users[0].user.token}')}
- name: reader
  user: {token: $(cat "$dir/reader-token")}
contexts:
- name: admin
  context: {cluster: ours, user: admin}
- name: reader
  context: {cluster: ours, user: reader}
current-context: admin
KUBECONFIG
echo "$dir/kubeconfig"
