# Finalizers: deletion is announced, and happens when the last one is taken off.
use_namespace finalizers
held() {
    quiet create -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: held, finalizers: [example.com/one, example.com/two]}
data: {a: "1"}
YAML
}
held
k delete configmap held --wait=false
k get configmap held -o jsonpath='{.metadata.finalizers} {.metadata.deletionGracePeriodSeconds}'
note_if_same "" "$(kubectl get configmap held -o jsonpath='{.metadata.deletionTimestamp}')" "(not marked)" "(marked as deleted)"
say "while it waits"
before=$(kubectl get configmap held -o jsonpath='{.metadata.resourceVersion}')
k delete configmap held --wait=false
after=$(kubectl get configmap held -o jsonpath='{.metadata.resourceVersion}')
note_if_same "$before" "$after" "(a second deletion changes nothing)" "(a second deletion is a change)"
k delete configmap held --timeout=1s
k patch configmap held --type=merge -p '{"data":{"a":"2"}}'
k patch configmap held --type=json -p '[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/three"}]'
k patch configmap held --type=merge -p '{"metadata":{"deletionTimestamp":null}}'
k create configmap held
k patch configmap held --type=json -p '[{"op":"remove","path":"/metadata/finalizers/0"}]'
k get configmap held -o jsonpath='{.metadata.finalizers} {.data}'
k patch configmap held --type=merge -p '{"metadata":{"finalizers":[]}}'
k get configmap held
say "an object with a name that means nothing to anybody"
k create --validate=false -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: bad, finalizers: [no-slash]}
YAML
k create --validate=false -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: bad, finalizers: ["bad chars/x"]}
YAML
say "watched"
held
watch_start get configmap held --watch-only --output-watch-events
quiet delete configmap held --wait=false
quiet patch configmap held --type=merge -p '{"metadata":{"finalizers":null}}'
watch_end 3
leave_namespace
