# Owners and what they own: background, foreground, orphan, several owners, owners that never were.
use_namespace cascade
own() {
    local child=$1 block=${3:-false} owner
    printf 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  ownerReferences:\n' "$child" >child.yaml
    for owner in ${2//,/ }; do
        printf '  - {apiVersion: v1, kind: ConfigMap, name: %s, uid: %s, blockOwnerDeletion: %s}\n' "$owner" \
            "$(kubectl get configmap "$owner" -o jsonpath='{.metadata.uid}')" "$block" >>child.yaml
    done
    quiet create -f child.yaml
}
say "background"
quiet create configmap farm
own barn farm
own horse barn
k delete configmap farm --cascade=background
gone configmap barn
gone configmap horse
k get configmap -o name

say "foreground"
quiet create configmap farm
own barn farm true
quiet patch configmap barn --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'
own horse barn true
# The collector learns of a new object a moment later than we do.
sleep 2
k delete configmap farm --cascade=foreground --wait=false
eventually get configmap barn -o go-template='{{if .metadata.deletionTimestamp}}yes{{end}}' yes
k get configmap farm -o jsonpath='{.metadata.finalizers}'
gone configmap horse
k get configmap -o name
eventually get configmap barn -o jsonpath='{.metadata.finalizers}' '["example.com/hold"]'
quiet patch configmap barn --type=merge -p '{"metadata":{"finalizers":null}}'
gone configmap farm
k get configmap -o name

say "orphan"
quiet create configmap farm
own barn farm
sleep 2
k delete configmap farm --cascade=orphan
gone configmap farm
k get configmap barn -o jsonpath='{.metadata.ownerReferences}'
k get configmap -o name
quiet delete configmap barn

say "two owners: the last one takes it along"
quiet create configmap first
quiet create configmap second
own shared first,second
sleep 2
k delete configmap first
eventually get configmap shared -o jsonpath='{.metadata.ownerReferences[*].name}' second
k get configmap shared -o jsonpath='{.metadata.ownerReferences[*].name}'
k delete configmap second
gone configmap shared
k get configmap -o name

say "an owner that never was"
quiet create -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata:
  name: foundling
  ownerReferences:
  - {apiVersion: v1, kind: ConfigMap, name: nobody, uid: 11111111-2222-3333-4444-555555555555}
YAML
gone configmap foundling
k get configmap foundling

say "references that are refused"
k create --validate=false -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata:
  name: bad
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: nobody}]
YAML
k create --validate=false -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata:
  name: bad
  ownerReferences:
  - {apiVersion: v1, kind: ConfigMap, name: a, uid: a, controller: true}
  - {apiVersion: v1, kind: ConfigMap, name: b, uid: b, controller: true}
YAML

say "across kinds"
quiet apply -f silo-crd.yaml
quiet wait --for=condition=established --timeout=30s crd/silos.farm.example.com
quiet get silos
quiet apply -f silo.yaml
uid=$(kubectl get silo north -o jsonpath='{.metadata.uid}')
quiet create -f - <<YAML
apiVersion: v1
kind: Secret
metadata:
  name: key-of-north
  ownerReferences: [{apiVersion: farm.example.com/v1, kind: Silo, name: north, uid: $uid, controller: true}]
YAML
# The collector looks for new kinds every half minute; objects of kinds it does not know yet stay a while.
k delete silo north
gone secret key-of-north
k get secret key-of-north
quiet delete crd silos.farm.example.com
leave_namespace
