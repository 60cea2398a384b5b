#!/usr/bin/env bash
# start.sh DIR: starts a real etcd + kube-apiserver + kube-controller-manager on free loopback ports,
# with all state in DIR, and returns when it answers. Afterwards DIR holds kubeconfig (contexts
# `admin` and `reader`), *.pid, *.log and seconds-to-ready. stop.sh DIR ends it again.
# With API_ONLY=1 the controller manager is left out.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/versions.sh"
. "$here/ports.sh"
. "$here/processes.sh"
dir=${1:?usage: start.sh DIR}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

# Admission plug-ins that add what only a kubelet, a scheduler or a storage controller would use.
# What is left is the API itself, which is what we compare.
SWITCHED_OFF=ServiceAccount,DefaultTolerationSeconds,TaintNodesByCondition,StorageObjectInUseProtection
CONTROLLERS=namespace-controller,garbage-collector-controller

for tool in "$PEER_DIR"/{etcd,kube-apiserver,kube-controller-manager} openssl curl; do
    command -v "$tool" >/dev/null || { echo "peers: $tool is missing; run $here/build.sh first" >&2; exit "$EXIT_NOT_AVAILABLE"; }
done

launch() {
    local name=$1
    shift
    setsid "$PEER_DIR/$name" "$@" >"$dir/$name.log" 2>&1 </dev/null &
    echo $! >"$dir/$name.pid"
}

await_or_stop() {
    local name=$1
    shift
    await "$name" "$dir" "$@" || { "$here/stop.sh" "$dir"; exit 1; }
}

secret() { openssl rand -hex 16; }

write_kubeconfig() {
    cat >"$dir/kubeconfig" <<KUBECONFIG
apiVersion: v1
kind: Config
clusters:
- name: real
  cluster:
    server: https://127.0.0.1:$api_port
    certificate-authority: $dir/certs/apiserver.crt
users:
- name: admin
  user: {token: $admin_token}
- name: reader
  user: {token: $reader_token}
contexts:
- name: admin
  context: {cluster: real, user: admin}
- name: reader
  context: {cluster: real, user: reader}
current-context: admin
KUBECONFIG
    chmod 600 "$dir/kubeconfig"
}

api() {
    curl -fsS --cacert "$dir/certs/apiserver.crt" -H "Authorization: Bearer $admin_token" \
        "https://127.0.0.1:$api_port$1" "${@:2}"
}

# The reader may look at everything but secrets, and change nothing: the same as our role of that name.
grant_reader() {
    local rbac=/apis/rbac.authorization.k8s.io/v1
    api $rbac/clusterroles -H 'Content-Type: application/json' -o /dev/null -d '{
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"},
        "rules": [
            {"apiGroups": [""], "verbs": ["get", "list", "watch"], "resources": ["configmaps", "endpoints", "events",
                "namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes", "pods", "serviceaccounts", "services"]},
            {"apiGroups": ["apiextensions.k8s.io", "coordination.k8s.io", "events.k8s.io", "storage.k8s.io"],
                "verbs": ["get", "list", "watch"], "resources": ["*"]}]}'
    api $rbac/clusterrolebindings -H 'Content-Type: application/json' -o /dev/null -d '{
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"}}'
}

reader_may_list() {
    curl -fsS --cacert "$dir/certs/apiserver.crt" -H "Authorization: Bearer $reader_token" \
        "https://127.0.0.1:$api_port/api/v1/namespaces"
}

etcd_port=$(free_port)
peer_port=$(free_port)
api_port=$(free_port)
manager_port=$(free_port)

# A directory that was started before keeps its tokens, so that a restart on existing data works.
if [[ ! -f "$dir/tokens.csv" ]]; then
    mkdir -p "$dir/certs"
    openssl genrsa -out "$dir/certs/service-account.key" 2048 2>/dev/null
    (umask 077 && printf '%s,admin,admin,"system:masters"\n%s,reader,reader\n' "$(secret)" "$(secret)" >"$dir/tokens.csv")
fi
admin_token=$(sed -n 's/,admin,.*//p' "$dir/tokens.csv")
reader_token=$(sed -n 's/,reader,.*//p' "$dir/tokens.csv")

started=$(date +%s%N)
launch etcd --data-dir "$dir/etcd" --log-level warn \
    --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
    --listen-peer-urls "http://127.0.0.1:$peer_port" --initial-advertise-peer-urls "http://127.0.0.1:$peer_port" \
    --initial-cluster "default=http://127.0.0.1:$peer_port" --quota-backend-bytes 8589934592
launch kube-apiserver --etcd-servers "http://127.0.0.1:$etcd_port" --cert-dir "$dir/certs" \
    --bind-address 127.0.0.1 --secure-port "$api_port" --token-auth-file "$dir/tokens.csv" \
    --authorization-mode RBAC --disable-admission-plugins "$SWITCHED_OFF" \
    --service-account-issuer https://kubernetes.default.svc \
    --service-account-signing-key-file "$dir/certs/service-account.key" \
    --service-account-key-file "$dir/certs/service-account.key" \
    --service-cluster-ip-range 10.96.0.0/16
write_kubeconfig
await_or_stop kube-apiserver api /readyz
seconds_since "$started" >"$dir/seconds-to-ready"
if [[ -z "${API_ONLY-}" ]]; then
    launch kube-controller-manager --kubeconfig "$dir/kubeconfig" --bind-address 127.0.0.1 \
        --secure-port "$manager_port" --cert-dir "$dir/certs" --leader-elect=false \
        --controllers "$CONTROLLERS" --use-service-account-credentials=false
    # A directory that was started before has the reader's role already.
    grant_reader 2>/dev/null || true
    await_or_stop kube-apiserver reader_may_list
    await_or_stop kube-controller-manager curl -fsk "https://127.0.0.1:$manager_port/healthz"
fi
echo "$dir/kubeconfig"
