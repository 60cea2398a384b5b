# Replace: the whole object, with and without a version.
use_namespace replace
quiet create configmap shelf --from-literal=a=1 --from-literal=b=2
quiet label configmap shelf keep=not
cat >shelf.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: shelf}
data: {c: "3"}
YAML
k replace -f shelf.yaml
k get configmap shelf -o jsonpath='{.data} {.metadata.labels}'
say "a version that is not the newest any more"
kubectl get configmap shelf -o json >old.json
quiet label configmap shelf newer=yes
k replace -f old.json
say "what is not there cannot be replaced"
k replace -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: nowhere}
YAML
say "somebody else's uid"
k replace -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: shelf, uid: 11111111-2222-3333-4444-555555555555}
YAML
say "by force: delete and create"
before=$(kubectl get configmap shelf -o jsonpath='{.metadata.uid}')
k replace --force -f shelf.yaml
after=$(kubectl get configmap shelf -o jsonpath='{.metadata.uid}')
note_if_same "$before" "$after" "(the same object)" "(a new object)"
leave_namespace
