# Delete: by name, by selector, all, by file, twice, with a grace period.
use_namespace delete
make() { for name in "$@"; do quiet create configmap "$name"; quiet label configmap "$name" group=x; done; }
make a b c d e
k delete configmap a
k delete configmap a
k delete configmap a --ignore-not-found
k delete configmap b c
k delete configmap d -o name
k delete configmap -l group=x
k delete configmap -l group=x
make a b
k delete configmap --all
k get configmaps
make a
k delete configmap a --dry-run=client
k delete configmap a --dry-run=server
k get configmap a -o name
k delete configmap a --wait=false
k delete -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
YAML
k delete configmap
k delete configmap a --all

say "a pod that no node runs is gone at once"
quiet apply -f pod.yaml
k delete pod mill
k get pods

say "a pod on a node is given time"
placed() {
    quiet create -f - <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: placed}
spec:
  nodeName: somewhere
  terminationGracePeriodSeconds: 20
  containers: [{name: main, image: example.com/main}]
YAML
}
placed
k delete pod placed --wait=false
k get pod placed -o jsonpath='{.metadata.deletionGracePeriodSeconds}'
k get pods
k delete pod placed --wait=false --grace-period=5
k get pod placed -o jsonpath='{.metadata.deletionGracePeriodSeconds}'
k delete pod placed --wait=false --grace-period=50
k get pod placed -o jsonpath='{.metadata.deletionGracePeriodSeconds}'
k delete pod placed --grace-period=0 --force
k get pods
placed
k delete pod placed --now --wait=false
k get pod placed -o jsonpath='{.metadata.deletionGracePeriodSeconds}'
k delete pod placed --grace-period=0 --force

say "only if it is still the one"
quiet create configmap guarded
printf '{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"11111111-2222-3333-4444-555555555555"}}' >options.json
http DELETE /api/v1/namespaces/delete/configmaps/guarded -H 'Content-Type: application/json' -d @options.json
printf '{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"resourceVersion":"1"}}' >options.json
http DELETE /api/v1/namespaces/delete/configmaps/guarded -H 'Content-Type: application/json' -d @options.json
http DELETE /api/v1/namespaces/delete/configmaps/guarded
http DELETE /api/v1/namespaces/delete/configmaps/guarded
leave_namespace
