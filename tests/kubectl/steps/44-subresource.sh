# The --subresource flag of newer clients.
needs_kubectl 24
use_namespace subresource
quiet apply -f silo-crd.yaml
quiet wait --for=condition=established --timeout=30s crd/silos.farm.example.com
quiet get silos
quiet apply -f silo.yaml
tick
k patch silo north --subresource=status --type=merge -p '{"status":{"phase":"Half","replicas":1},"spec":{"owner":"mallory"}}'
k get silo north --subresource=status -o jsonpath='{.status} {.spec.owner}'
k get silo north --subresource=scale
k get silo north --subresource=scale -o yaml
tick
k patch silo north --subresource=scale --type=merge -p '{"spec":{"replicas":2}}'
k get silo north -o jsonpath='{.spec.replicas}'
k apply --server-side --subresource=status --field-manager=keeper -f - <<'YAML'
apiVersion: farm.example.com/v1
kind: Silo
metadata: {name: north}
status: {phase: Empty}
YAML
k get silo north --show-managed-fields -o jsonpath='{range .metadata.managedFields[*]}{.manager} {.operation} {.subresource}{"\n"}{end}'
say "built-in kinds"
quiet apply -f storage.yaml
k patch pvc grain --subresource=status --type=merge -p '{"status":{"phase":"Bound","capacity":{"storage":"5Gi"}},"spec":{"volumeName":"ignored"}}'
k get pvc grain
k patch pvc grain --type=merge -p '{"status":{"phase":"Lost"}}'
k get pvc grain -o jsonpath='{.status.phase} {.spec.volumeName}'
k patch pv cold-1 --subresource=status --type=merge -p '{"status":{"phase":"Released","message":"free again"}}'
k get pv cold-1
k get configmap nothing --subresource=status
quiet delete pvc grain
quiet delete pv cold-1
quiet delete sc cold
quiet delete crd silos.farm.example.com
leave_namespace
