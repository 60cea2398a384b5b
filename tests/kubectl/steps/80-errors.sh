# What goes wrong, and how the server says so.
use_namespace errors
quiet create configmap there --from-literal=a=1
say "not there, or there already"
k get configmap missing
k get configmap missing there
k get configmap missing --ignore-not-found
k create configmap there
k get nonsense
k get nonsense.example.com
k get configmaps.v9
k get configmap/there/extra
k delete nonsense x
k create -f missing.yaml
say "unknown kinds"
k create -f - <<'YAML'
apiVersion: v1
kind: Nonsense
metadata: {name: x}
YAML
k create -f - <<'YAML'
apiVersion: example.com/v1
kind: Thing
metadata: {name: x}
YAML
k apply -f - <<'YAML'
kind: ConfigMap
metadata: {name: x}
YAML
k apply -f - <<'YAML'
apiVersion: v1
metadata: {name: x}
YAML
say "malformed"
k create -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: x
YAML
k create -f - <<<'{"apiVersion": "v1", "kind":'
k create --validate=false -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: x}
data: [1, 2]
YAML
say "names and labels"
for name in Upper under_score -dash dash- 'dots..dots' '.' "$(printf 'x%.0s' {1..254})"; do
    k create configmap "$name"
done
k create namespace dots.not.allowed
k create namespace "$(printf 'x%.0s' {1..64})"
k create --validate=false -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {labels: {a: b}}
YAML
k create --validate=false -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata:
  name: labels
  labels: {"bad key": x, good: "bad value", "UPPER.example.com/x": "y", "a/b/c": z}
  annotations: {"bad key": x}
YAML
k create --validate=false -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: keys}
data: {"bad key": x, "..": z}
binaryData: {same: eA==}
YAML
k create --validate=false -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: keys}
data: {same: x}
binaryData: {same: eA==}
YAML
say "stale"
kubectl get configmap there -o json >old.json
quiet patch configmap there --type=merge -p '{"data":{"a":"2"}}'
k replace -f old.json
k apply -f old.json
say "too big"
head -c 1100000 /dev/zero | tr '\0' x >big
k create configmap big --from-file=big
k create secret generic big --from-file=big
head -c 1600000 /dev/zero | tr '\0' x >big
k create configmap big --from-file=big
head -c 3200000 /dev/zero | tr '\0' x >big
k create configmap big --from-file=big
say "flags"
k get configmap -o nonsense
k get configmap there -o jsonpath='{.data'
leave_namespace
