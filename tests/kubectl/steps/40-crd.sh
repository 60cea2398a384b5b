# A definition makes a resource: it is established, discovered, stored, defaulted, pruned, printed.
use_namespace crd
quiet delete crd silos.farm.example.com --ignore-not-found
say "the definition"
k apply -f silo-crd.yaml
k wait --for=condition=established --timeout=30s crd/silos.farm.example.com
k apply -f silo-crd.yaml
k get crd silos.farm.example.com
k get crd silos.farm.example.com -o jsonpath='{.status.acceptedNames} {.status.storedVersions} {.spec.conversion}'
k get crd silos.farm.example.com -o jsonpath='{range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}'
k api-resources --api-group=farm.example.com
k api-resources --api-group=farm.example.com -o wide
kf 'grep farm' api-versions

say "an object of it"
k get silos
k apply -f silo.yaml
k apply -f silo.yaml
k get silos
k get sil -o wide
k get silo/north --show-labels
k get farm
k get silos.farm.example.com north -o json
k get silos.v1beta1.farm.example.com north -o jsonpath='{.apiVersion} {.spec.tier}'
k get silo north -o name

say "unknown fields are pruned where the schema does not keep them"
k create --validate=false -f - <<'YAML'
apiVersion: farm.example.com/v1
kind: Silo
metadata: {name: pruned}
spec:
  capacity: 3
  unknown: {a: b}
  extra: {unknown: kept}
  doors: [{name: d, unknown: x}]
  note: null
  options: null
status: {phase: ignored}
topLevel: gone
YAML
k get silo pruned -o jsonpath='{.spec} {.status} {.topLevel}'

say "patches"
k patch silo north --type=merge -p '{"spec":{"owner":"bob","tags":["wet"]}}'
k patch silo north --type=json -p '[{"op":"add","path":"/spec/doors/0/locked","value":true}]'
k patch silo north -p '{"spec":{"owner":"strategic"}}'
k get silo north -o jsonpath='{.spec.owner} {.spec.tags} {.spec.doors} {.metadata.generation}'
k apply --server-side --field-manager=guard -f - <<'YAML'
apiVersion: farm.example.com/v1
kind: Silo
metadata: {name: north}
spec:
  capacity: 40
  tags: [guarded]
  doors: [{name: side, locked: true}]
YAML
k get silo north -o json
k apply --server-side --field-manager=rival -f - <<'YAML'
apiVersion: farm.example.com/v1
kind: Silo
metadata: {name: north}
spec: {capacity: 41, doors: [{name: side, locked: false}]}
YAML
k label silo north a=b
k annotate silo north a=b

say "through the older version"
k apply -f - <<'YAML'
apiVersion: farm.example.com/v1beta1
kind: Silo
metadata: {name: old-style}
spec: {capacity: 9}
YAML
k get silo old-style -o jsonpath='{.apiVersion} {.spec}'

say "selectors and deletion"
k get silos -l side=north -o name
k get silos --field-selector metadata.name=north -o name
k get silos --field-selector spec.tier=standard
k delete silo pruned
k delete silos --all
k get silos

say "the definition goes, and its objects with it"
quiet apply -f silo.yaml
k delete crd silos.farm.example.com
k get silos
leave_namespace
