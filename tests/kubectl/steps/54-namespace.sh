# Namespaces: nothing without one, nothing new while it goes, everything gone with it.
quiet delete namespace hamlet --ignore-not-found
say "not there yet"
k create configmap a -n hamlet
k get configmap -n hamlet
k create namespace hamlet
k create namespace hamlet
k create namespace Hamlet
k get namespace hamlet -o jsonpath='{.status} {.spec} {.metadata.labels}'
quiet create configmap a -n hamlet
quiet create secret generic s -n hamlet
quiet create -n hamlet -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: held, finalizers: [example.com/hold]}
YAML
say "while it goes"
k delete namespace hamlet --wait=false
eventually get configmap a -n hamlet --ignore-not-found -o name ''
k get namespace hamlet
k get configmap -n hamlet -o name
k create configmap late -n hamlet
k apply -n hamlet -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: late}
YAML
eventually get namespace hamlet -o jsonpath='{.status.conditions[?(@.type=="NamespaceFinalizersRemaining")].status}' True
k get namespace hamlet -o jsonpath='{range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}'
quiet patch configmap held -n hamlet --type=merge -p '{"metadata":{"finalizers":null}}'
gone namespace hamlet
k get namespace hamlet
say "those that stay"
k delete namespace default
k delete namespace kube-system
say "the wrong namespace in the file"
k create -n default -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: hamlet}
YAML
