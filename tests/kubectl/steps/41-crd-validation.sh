# Everything that a schema can refuse, with the path of the field in the message.
use_namespace crd-validation
quiet apply -f silo-crd.yaml
quiet wait --for=condition=established --timeout=30s crd/silos.farm.example.com
# Client-side validation would answer first; here the server is asked.
try() {
    printf 'apiVersion: farm.example.com/v1\nkind: Silo\nmetadata: {name: trial}\nspec: %s\n' "$1" >trial.yaml
    note "spec: $1"
    k create --validate=false -f trial.yaml
    kubectl delete silo trial --ignore-not-found >/dev/null
}
quiet get silos
try '{}'
try '{capacity: 0}'
try '{capacity: 100001}'
try '{capacity: ten}'
try '{capacity: 1.5}'
try '{capacity: 1.0}'
try '{capacity: 5, tier: gold}'
try '{capacity: 5, code: S7}'
try '{capacity: 5, code: s-123456789012345}'
try '{capacity: 5, code: p-1}'
try '{capacity: 5, tier: premium, code: p-1}'
try '{capacity: 5, owner: x}'
try '{capacity: 5, replicas: 6}'
try '{capacity: 5, replicas: -1}'
try '{capacity: 5, since: yesterday}'
try '{capacity: 5, since: "2020-01-02T03:04:05+01:00"}'
try '{capacity: 5, amount: 5}'
try '{capacity: 5, amount: true}'
try '{capacity: 5, tags: [a, a]}'
try '{capacity: 5, tags: [a, b, c, d]}'
try '{capacity: 5, tags: [1]}'
try '{capacity: 5, doors: [{name: a}, {name: a}]}'
try '{capacity: 5, doors: [{width: 3}]}'
try '{capacity: 5, options: {a: 1}}'
try '{capacity: 5, note: null}'
try '{capacity: 5, owner: null}'
try '{capacity: 0, tier: gold, tags: [a, a], owner: x}'
try 'text'
try '[]'
try 'null'
say "rules that look at the old object"
quiet create -f - <<'YAML'
apiVersion: farm.example.com/v1
kind: Silo
metadata: {name: fixed}
spec: {capacity: 5}
YAML
k patch silo fixed --type=merge -p '{"spec":{"tier":"premium"}}'
k patch silo fixed --type=merge -p '{"spec":{"capacity":6}}'
k patch silo fixed --type=merge -p '{"spec":{"capacity":"many"}}'
k patch silo fixed --type=merge -p '{"spec":null}'
k apply --server-side --validate=false -f - <<'YAML'
apiVersion: farm.example.com/v1
kind: Silo
metadata: {name: fixed}
spec: {capacity: 5, tier: gold}
YAML
say "bad names and metadata"
k create --validate=false -f - <<'YAML'
apiVersion: farm.example.com/v1
kind: Silo
metadata: {name: Not_Good, labels: {a: "b c"}}
spec: {capacity: 5}
YAML
k create --validate=false -f - <<'YAML'
apiVersion: farm.example.com/v1
kind: Silo
metadata: {name: odd, finalizers: [no-slash], labels: [a]}
spec: {capacity: 5}
YAML
k create --validate=false -f - <<'YAML'
apiVersion: farm.example.com/v2
kind: Silo
metadata: {name: odd}
spec: {capacity: 5}
YAML
say "client-side validation from the published schema"
k create -f - <<'YAML'
apiVersion: farm.example.com/v1
kind: Silo
metadata: {name: odd}
spec: {capacity: many, colour: red}
YAML
quiet delete crd silos.farm.example.com
leave_namespace
