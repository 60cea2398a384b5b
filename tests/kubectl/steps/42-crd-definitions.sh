# Definitions that are refused, and definitions that change while objects exist.
use_namespace crd-definitions
definition() {
    local schema='{type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}'
    cat <<YAML
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: $1}
spec:
  group: ${2:-defs.example.com}
  scope: ${3:-Namespaced}
  names: {plural: barns, singular: barn, kind: Barn}
  versions:
  - name: v1
    served: true
    storage: ${4:-true}
    schema:
      openAPIV3Schema: ${5-$schema}
YAML
}
try() {
    definition "$@" >definition.yaml
    k create --validate=false -f definition.yaml
    kubectl delete crd barns.defs.example.com --ignore-not-found >/dev/null 2>&1
}
say "refused"
try barn.defs.example.com
try barns.defs.example.com nodots
try barns.defs.example.com defs.example.com Planet
try barns.defs.example.com defs.example.com Namespaced false
try barns.defs.example.com defs.example.com Namespaced true '{type: string}'
try barns.defs.example.com defs.example.com Namespaced true '{properties: {a: {type: string}}}'
try barns.defs.example.com defs.example.com Namespaced true '{type: object, properties: {a: {type: colour}}}'
try barns.defs.example.com defs.example.com Namespaced true '{type: object, properties: {a: {}}}'
try barns.defs.example.com defs.example.com Namespaced true '{type: object, properties: {a: {type: string, default: 5}}}'
try barns.defs.example.com defs.example.com Namespaced true '{type: object, properties: {a: {type: array}}}'
try barns.defs.example.com defs.example.com Namespaced true '{type: object, x-kubernetes-validations: [{rule: "self.x +"}]}'
try barns.defs.example.com defs.example.com Namespaced true '{type: object, properties: {a: {type: string, pattern: "("}}}'
try barns.defs.example.com defs.example.com Namespaced true ''
definition barns.defs.example.com | sed '/schema:/,$d' >definition.yaml
k create --validate=false -f definition.yaml

say "changed while objects exist"
definition barns.defs.example.com | quiet apply -f -
quiet wait --for=condition=established --timeout=30s crd/barns.defs.example.com
quiet create -f - <<'YAML'
apiVersion: defs.example.com/v1
kind: Barn
metadata: {name: red}
spec: {size: 3}
YAML
k get barns
definition barns.defs.example.com defs.example.com Namespaced true \
    '{type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: 2}, roof: {type: string, default: tin}}}}}' >definition.yaml
k apply -f definition.yaml
eventually get barn red -o jsonpath='{.spec.roof}' tin
k get barn red -o jsonpath='{.spec}'
say "what was valid before may stay as it is"
k label barn red a=b
k patch barn red --type=merge -p '{"spec":{"size":4}}'
k patch crd barns.defs.example.com --type=merge -p '{"spec":{"scope":"Cluster"}}'
k patch crd barns.defs.example.com --type=merge -p '{"spec":{"group":"other.example.com"}}'
k patch crd barns.defs.example.com --type=json -p '[{"op":"remove","path":"/spec/versions/0"}]'
say "another one with the same kind"
k create -f - <<'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: stables.defs.example.com}
spec:
  group: defs.example.com
  scope: Cluster
  names: {plural: stables, singular: stable, kind: Barn}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
YAML
eventually get crd stables.defs.example.com -o jsonpath='{.status.conditions[?(@.type=="NamesAccepted")].status}' False
k get crd stables.defs.example.com -o jsonpath='{range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}'
quiet delete crd barns.defs.example.com stables.defs.example.com

say "cluster-wide, without a status, everything kept"
quiet create -f - <<'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: weathers.defs.example.com}
spec:
  group: defs.example.com
  scope: Cluster
  names: {plural: weathers, kind: Weather}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
YAML
quiet wait --for=condition=established --timeout=30s crd/weathers.defs.example.com
k create -f - <<'YAML'
apiVersion: defs.example.com/v1
kind: Weather
metadata: {name: today}
sun: true
wind: {speed: 3.5, from: [north, west]}
status: {seen: yes}
YAML
k get weather
k get weather today -o json
k patch weather today --type=merge -p '{"status":{"seen":"no"},"sun":false}'
k get weather today -o jsonpath='{.sun} {.status} {.metadata.generation}'
k get weather -n anywhere -o name
quiet delete crd weathers.defs.example.com
leave_namespace
