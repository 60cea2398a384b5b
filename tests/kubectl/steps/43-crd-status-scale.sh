# Status and scale are doors of their own: what goes through one does not touch the other.
use_namespace crd-status
quiet apply -f silo-crd.yaml
quiet wait --for=condition=established --timeout=30s crd/silos.farm.example.com
quiet get silos
path=/apis/farm.example.com/v1/namespaces/crd-status/silos/north
k apply -f silo.yaml
k get silo north -o jsonpath='{.metadata.generation} {.status}'

say "status through the main door is ignored"
k patch silo north --type=merge -p '{"status":{"phase":"Full"}}'
k get silo north -o jsonpath='{.metadata.generation} {.status}'

say "spec through the status door is ignored"
kubectl get silo north -o json | jq '.status = {phase: "Full", replicas: 2, selector: "side=north"} | .spec.owner = "mallory" | .metadata.labels.added = "yes" | .metadata.annotations.added = "yes"' >north.json
kf "jq -S '{labels: .metadata.labels, annotations: .metadata.annotations | keys, spec: .spec.owner, status, generation: .metadata.generation}'" replace --raw "$path/status" -f north.json
k get silo north -o jsonpath='{.metadata.generation} {.spec.owner} {.status}'
k get silos
tick
kubectl get silo north -o json | jq '.status.conditions = [{type: "Ready", status: "True", reason: "Filled", message: "to the brim"}]' >north.json
kf "jq -S .status" replace --raw "$path/status" -f north.json
k get silos
k get silo north -o json
say "a bad status"
kubectl get silo north -o json | jq '.status.phase = 5' >north.json
k replace --raw "$path/status" -f north.json

say "generation counts changes of the spec only"
k patch silo north --type=merge -p '{"spec":{"owner":"bob"}}'
k label silo north moved=yes
k get silo north -o jsonpath='{.metadata.generation}'

say "scale"
k scale silo north --replicas=3
k get silo north -o jsonpath='{.spec.replicas} {.metadata.generation}'
k scale silo north --current-replicas=1 --replicas=5
k scale silo north --current-replicas=3 --replicas=5
kf "jq -S 'del(.metadata.creationTimestamp)'" get --raw "$path/scale"
k scale silo north --replicas=41
k scale silo north --replicas=-1
k scale silo missing --replicas=2
k scale silo --all --replicas=2
k scale configmap nothing --replicas=2
kf "jq -S .spec" get --raw "$path/scale"
printf '{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"north","namespace":"crd-status"},"spec":{"replicas":4}}' >scale.json
kf "jq -S '{kind, spec, status}'" replace --raw "$path/scale" -f scale.json
k get silo north -o jsonpath='{.spec.replicas}'
quiet delete crd silos.farm.example.com
leave_namespace
