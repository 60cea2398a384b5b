# A dry run goes all the way to the store and stops there.
use_namespace dry-run
quiet create configmap real --from-literal=a=1
k create configmap imagined --from-literal=a=1 --dry-run=server
k create configmap imagined --from-literal=a=1 --dry-run=client
k create configmap real --dry-run=server
k create configmap 'Bad Name' --dry-run=server
k apply --dry-run=server -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: imagined}
data: {a: "1"}
YAML
k apply --dry-run=client -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: imagined}
data: {a: "1"}
YAML
k apply --server-side --dry-run=server -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: imagined}
data: {a: "1"}
YAML
before=$(kubectl get configmap real -o jsonpath='{.metadata.resourceVersion}')
k patch configmap real --type=merge -p '{"data":{"a":"2"}}' --dry-run=server -o jsonpath='{.data}'
k patch configmap real --type=merge -p '{"data":{"a":"2"}}' --dry-run=client
k replace --dry-run=server -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: real}
data: {b: "2"}
YAML
k delete configmap real --dry-run=server
k annotate configmap real x=y --dry-run=server
after=$(kubectl get configmap real -o jsonpath='{.metadata.resourceVersion}')
note_if_same "$before" "$after" "(nothing was stored)" "(something was stored)"
k get configmap -o name
k create --dry-run=server -o json -f - <<'YAML'
apiVersion: v1
kind: Pod
metadata: {generateName: made-up-}
spec:
  containers: [{name: main, image: example.com/main}]
YAML
http POST "/api/v1/namespaces/dry-run/configmaps?dryRun=Some" -H 'Content-Type: application/json' -d '{"metadata":{"name":"x"}}'
leave_namespace
