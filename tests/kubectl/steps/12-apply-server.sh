# Server-side apply: who owns which field, conflicts, taking over, giving up.
use_namespace apply-server
cat >gate.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata:
  name: gate
  labels: {app: gate}
data:
  colour: green
  size: "12"
YAML
say "create, again, change, remove a field"
k apply --server-side -f gate.yaml
k apply --server-side -f gate.yaml
tick
sed -i '/size/d; s/green/blue/' gate.yaml
k apply --server-side -f gate.yaml
k get configmap gate -o json

say "somebody else wants another value"
cat >other.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: gate}
data:
  colour: red
  height: "3"
YAML
k apply --server-side --field-manager=other -f other.yaml
tick
k apply --server-side --field-manager=other --force-conflicts -f other.yaml
k get configmap gate -o json

say "the same value is shared, and stays when one owner gives it up"
cat >shared.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: gate}
data:
  height: "3"
YAML
tick
k apply --server-side --field-manager=third -f shared.yaml
tick
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gate}\ndata: {}\n' >empty.yaml
k apply --server-side --field-manager=other -f empty.yaml
k get configmap gate -o json

say "a plain update takes fields away from an applier"
tick
k patch configmap gate --type=merge -p '{"data":{"height":"4"}}'
k apply --server-side --field-manager=third -f shared.yaml
k get configmap gate -o json

say "lists with keys: each manager its own items"
k apply --server-side --field-manager=web -f - <<'YAML'
apiVersion: v1
kind: Service
metadata: {name: door}
spec:
  clusterIP: None
  ports:
  - {name: web, port: 80, protocol: TCP}
YAML
tick
k apply --server-side --field-manager=metrics -f - <<'YAML'
apiVersion: v1
kind: Service
metadata: {name: door}
spec:
  ports:
  - {name: metrics, port: 9090, protocol: TCP}
YAML
k get service door -o json
k apply --server-side --field-manager=web -f - <<'YAML'
apiVersion: v1
kind: Service
metadata: {name: door}
spec:
  clusterIP: None
YAML
k get service door -o jsonpath='{.spec.ports[*].name}'

say "finalizers are a set, owner references a map by uid"
k apply --server-side --field-manager=one -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: held, finalizers: [example.com/one]}
YAML
k apply --server-side --field-manager=two -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: held, finalizers: [example.com/two]}
YAML
k get configmap held -o jsonpath='{.metadata.finalizers}'
k apply --server-side --field-manager=one -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: held}
YAML
k get configmap held -o jsonpath='{.metadata.finalizers}'
quiet patch configmap held --type=merge -p '{"metadata":{"finalizers":null}}'

say "what cannot be applied"
k apply --server-side -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: gate, managedFields: [{manager: me}]}
YAML
k apply --server-side --validate=false -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: gate}
data: {a: b}
daata: {c: d}
YAML
k apply --server-side --validate=false -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: gate}
data: [not, a, map]
YAML
k apply --server-side --field-manager=duplicates --validate=false -f - <<'YAML'
apiVersion: v1
kind: Service
metadata: {name: door}
spec:
  ports:
  - {name: web, port: 80, protocol: TCP}
  - {name: again, port: 80, protocol: TCP}
YAML
k apply --server-side --dry-run=server -f gate.yaml --field-manager=only-looking --force-conflicts
k get configmap gate -o jsonpath='{.metadata.managedFields[*].manager}'

say "from client-side to server-side apply"
quiet apply -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: moving}
data: {a: "1", b: "2"}
YAML
tick
k apply --server-side -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: moving}
data: {a: "1"}
YAML
k get configmap moving -o json
leave_namespace
