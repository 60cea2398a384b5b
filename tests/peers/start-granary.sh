#!/usr/bin/env bash
# start-granary.sh BINARY DIR: starts our server on a free loopback port with its data in DIR/data, and
# returns when it answers. DIR/kubeconfig has the same contexts as the one that start.sh writes for the
# real server (`admin`, `reader`). stop-granary.sh DIR ends it again.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/ports.sh"
binary=$(realpath "${1:?usage: start-granary.sh BINARY DIR}")
dir=${2:?usage: start-granary.sh BINARY DIR}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

port=$(free_port)
setsid "$binary" up --data-dir "$dir/data" --listen "127.0.0.1:$port" >"$dir/granary.log" 2>&1 </dev/null &
echo $! >"$dir/granary.pid"

api() {
    curl -fsk -H "Authorization: Bearer $(cat "$dir/data/token")" "https://127.0.0.1:$port$1" "${@:2}"
}
deadline=$((SECONDS + 60))
until api /readyz >/dev/null 2>&1; do
    if ((SECONDS > deadline)) || ! kill -0 "$(cat "$dir/granary.pid")" 2>/dev/null; then
        echo "peers: granary did not come up:" >&2
        tail -20 "$dir/granary.log" >&2
        "$here/stop-granary.sh" "$dir"
        exit 1
    fi
    sleep 0.05
done

# A token is a Secret that holds its hash; see the administrator's guide.
reader_token=$(cat "$dir/reader-token" 2>/dev/null || openssl rand -hex 32 | tee "$dir/reader-token")
if ! api /api/v1/namespaces/granary-system/secrets/token-reader >/dev/null 2>&1; then
    hash=$(printf %s "$reader_token" | openssl dgst -sha256 -binary | base64 -w0)
    api /api/v1/namespaces/granary-system/secrets -o /dev/null -H 'Content-Type: application/json' -d '{
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token-reader"}, "type": "granary.io/token",
        "data": {"user": "'"$(printf reader | base64)"'", "role": "'"$(printf read-only | base64)"'", "sha256": "'"$hash"'"}}'
fi
(
    umask 077
    cat >"$dir/kubeconfig" <<KUBECONFIG
apiVersion: v1
kind: Config
clusters:
- name: ours
  cluster: {server: "https://127.0.0.1:$port", insecure-skip-tls-verify: true}
users:
- name: admin
  user: {token: $(cat "$dir/data/token")}
- name: reader
  user: {token: $reader_token}
contexts:
- name: admin
  context: {cluster: ours, user: admin}
- name: reader
  context: {cluster: ours, user: reader}
current-context: admin
KUBECONFIG
)
echo "$dir/kubeconfig"
