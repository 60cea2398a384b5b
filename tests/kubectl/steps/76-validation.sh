# Fields that nobody knows: the client's own check, and the server's three ways to look at them.
use_namespace validation
cat >typo.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: typo, lables: {a: b}}
daata: {a: "1"}
YAML
cat >types.yaml <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: types}
spec:
  containers: [{name: main, image: 5, ports: [{containerPort: text}]}]
YAML
say "the client's check"
k create -f typo.yaml
k create -f types.yaml
k create -f - <<'YAML'
apiVersion: v1
kind: Secret
metadata: {name: no-base64}
data: {a: "not base64!"}
YAML
k create -f - <<'YAML'
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: missing-parts}
spec: {}
YAML
say "none"
k create --validate=false -f typo.yaml
k get configmap typo -o jsonpath='{.data}{.metadata.labels}'
quiet delete configmap typo --ignore-not-found
k create --validate=false -f types.yaml
if ((KUBECTL_MINOR >= 25)); then
    say "the server's check"
    k create --validate=strict -f typo.yaml
    k create --validate=warn -f typo.yaml
    k create --validate=ignore -f typo.yaml
    k apply --validate=strict -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: twice}
data: {a: "1", a: "2"}
YAML
    # With two of them the server names one or both, as chance will have it.
    sed 's/, lables: {a: b}//' typo.yaml >one-typo.yaml
    k apply --server-side --validate=strict -f one-typo.yaml
fi
say "the server's check, asked for by hand"
typo='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"by-hand","lables":{"a":"b"}},"daata":{},"data":{"a":"1","a":"2"}}'
for how in Strict Warn Ignore Sometimes; do
    http POST "/api/v1/namespaces/validation/configmaps?fieldValidation=$how&dryRun=All" -H 'Content-Type: application/json' -d "$typo"
done
quiet create configmap there --from-literal=a=1
for how in Strict Warn; do
    http PATCH "/api/v1/namespaces/validation/configmaps/there?fieldValidation=$how&dryRun=All" -H 'Content-Type: application/merge-patch+json' -d '{"daata":{"b":"2"}}'
    http PATCH "/api/v1/namespaces/validation/configmaps/there?fieldValidation=$how&dryRun=All" -H 'Content-Type: application/json-patch+json' -d '[{"op":"add","path":"/daata","value":{"b":"2"}}]'
    http PATCH "/api/v1/namespaces/validation/configmaps/there?fieldValidation=$how&dryRun=All" -H 'Content-Type: application/strategic-merge-patch+json' -d '{"daata":{"b":"2"}}'
done
say "for a kind that a definition made"
quiet apply -f silo-crd.yaml
quiet wait --for=condition=established --timeout=30s crd/silos.farm.example.com
quiet get silos
silo='{"apiVersion":"farm.example.com/v1","kind":"Silo","metadata":{"name":"s"},"spec":{"capacity":5,"colour":"red","doors":[{"name":"a","shape":"round"}]}}'
for how in Strict Warn Ignore; do
    http POST "/apis/farm.example.com/v1/namespaces/validation/silos?fieldValidation=$how&dryRun=All" -H 'Content-Type: application/json' -d "$silo"
done
quiet delete crd silos.farm.example.com
leave_namespace
