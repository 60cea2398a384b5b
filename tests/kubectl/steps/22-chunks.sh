# Lists in pieces give the same whole; the pieces say how much is left.
use_namespace chunks
for n in $(seq -w 1 11); do
    printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: item-%s, labels: {odd: "%s"}}\n---\n' "$n" $((10#$n % 2))
done >items.yaml
quiet create -f items.yaml
k get configmap --chunk-size=3 -o name
k get configmap --chunk-size=3
k get configmap --chunk-size=2 -l odd=1 -o name
k get configmap --chunk-size=1 --field-selector metadata.name=item-07 -o name
k get configmap --chunk-size=0 -o name
shape='{kind, names: [.items[].metadata.name], more: (.metadata.continue // "" | length > 0), left: .metadata.remainingItemCount}'
kf "jq -Sc '$shape'" get --raw "/api/v1/namespaces/chunks/configmaps?limit=4"
token=$(kubectl get --raw "/api/v1/namespaces/chunks/configmaps?limit=4" | jq -r .metadata.continue)
first=$(kubectl get --raw "/api/v1/namespaces/chunks/configmaps?limit=4" | jq -r .metadata.resourceVersion)
say "the next pieces show the same moment as the first"
quiet delete configmap item-06
quiet create configmap item-055
next=$(kubectl get --raw "/api/v1/namespaces/chunks/configmaps?limit=4&continue=$token")
jq -Sc "$shape" <<<"$next" >>"$transcript"
note_if_same "$(jq -r .metadata.resourceVersion <<<"$next")" "$first" "(the same version)" "(another version)"
token=$(jq -r .metadata.continue <<<"$next")
kubectl get --raw "/api/v1/namespaces/chunks/configmaps?limit=4&continue=$token" | jq -Sc "$shape" >>"$transcript"
say "with a selector nobody knows how many are left"
kf "jq -Sc '$shape'" get --raw "/api/v1/namespaces/chunks/configmaps?limit=2&labelSelector=odd%3D1"
say "a token that was not given by the server"
k get --raw "/api/v1/namespaces/chunks/configmaps?limit=4&continue=e30"
k get --raw "/api/v1/namespaces/chunks/configmaps?limit=4&continue=$token&resourceVersion=1"
kf "jq -Sc '$shape'" get --raw "/api/v1/namespaces/chunks/configmaps?limit=-1"
leave_namespace
