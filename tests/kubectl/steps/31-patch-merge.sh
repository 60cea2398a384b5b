# Merge patch (RFC 7386): null removes, lists are replaced as a whole.
use_namespace patch-merge
quiet create -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: board, labels: {a: "1", b: "2"}, finalizers: [example.com/a, example.com/b]}
data: {one: "1", two: "2"}
YAML
patch() { k patch configmap board --type=merge -p "$1"; }
patch '{"data":{"one":"uno","two":null,"three":"3"}}'
patch '{"metadata":{"labels":{"a":null}}}'
patch '{"metadata":{"finalizers":["example.com/only"]}}'
patch '{"data":{"one":"uno"}}'
k get configmap board -o jsonpath='{.data} {.metadata.labels} {.metadata.finalizers}'
patch 'data: {yaml: works-too}'
patch '{"data":null}'
k get configmap board -o jsonpath='{.data}'
patch '{"metadata":{"finalizers":null}}'
say "what does not fit"
patch '{"data":{"a":5}}'
patch '{"data":"text"}'
patch '{"metadata":{"resourceVersion":"1"},"data":{"late":"yes"}}'
patch '{"metadata":{"namespace":"elsewhere"}}'
patch '{"metadata":{"uid":"11111111-2222-3333-4444-555555555555"}}'
patch '{"kind":"Secret"}'
patch '{"apiVersion":"v2"}'
patch '[1,2]'
k patch configmap missing --type=merge -p '{"data":{"a":"b"}}'
say "the version that is the newest is accepted"
version=$(kubectl get configmap board -o jsonpath='{.metadata.resourceVersion}')
printf '$ kubectl patch with the version it has\n' >>"$transcript"
kubectl patch configmap board --type=merge -p '{"metadata":{"resourceVersion":"'"$version"'"},"data":{"late":"no"}}' >>"$transcript"
leave_namespace
