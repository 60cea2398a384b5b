# JSON patch (RFC 6902): every operation, and what the server says when one does not fit.
use_namespace patch-json
quiet create -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: board, labels: {a: "1", "example.com/slash": x}}
data: {one: "1", two: "2"}
YAML
patch() { k patch configmap board --type=json -p "$1"; }
patch '[{"op":"add","path":"/data/three","value":"3"}]'
patch '[{"op":"replace","path":"/data/one","value":"uno"}]'
patch '[{"op":"remove","path":"/data/two"}]'
patch '[{"op":"move","from":"/data/three","path":"/data/drei"}]'
patch '[{"op":"copy","from":"/data/one","path":"/data/eins"}]'
patch '[{"op":"test","path":"/data/one","value":"uno"},{"op":"add","path":"/metadata/labels/tested","value":"yes"}]'
patch '[{"op":"replace","path":"/metadata/labels/example.com~1slash","value":"y"}]'
patch '[{"op":"add","path":"/metadata/annotations","value":{"n":"1"}}]'
k get configmap board -o jsonpath='{.data} {.metadata.labels} {.metadata.annotations}'
say "nothing to do"
patch '[]'
patch '[{"op":"replace","path":"/data/one","value":"uno"}]'
say "what does not fit"
patch '[{"op":"test","path":"/data/one","value":"other"}]'
patch '[{"op":"remove","path":"/data/missing"}]'
patch '[{"op":"replace","path":"/data/missing","value":"x"}]'
patch '[{"op":"add","path":"/nowhere/deep","value":"x"}]'
patch '[{"op":"dance","path":"/data/one"}]'
patch '[{"op":"add","path":"/data/number","value":5}]'
patch '[{"op":"replace","path":"/metadata/name","value":"renamed"}]'
patch '[{"op":"replace","path":"/metadata/labels/a","value":"not a label!"}]'
patch '{"data":{"a":"b"}}'
patch 'not json'
say "lists"
quiet apply -f pod.yaml
k patch pod mill --type=json -p '[{"op":"replace","path":"/spec/containers/0/image","value":"example.com/grind:3"}]'
k patch pod mill --type=json -p '[{"op":"add","path":"/spec/tolerations/-","value":{"key":"k","operator":"Exists"}}]'
k patch pod mill --type=json -p '[{"op":"add","path":"/spec/tolerations","value":[{"key":"k","operator":"Exists"}]}]'
k patch pod mill --type=json -p '[{"op":"replace","path":"/spec/containers/9/image","value":"x"}]'
k get pod mill -o jsonpath='{.spec.containers[0].image} {.spec.tolerations}'
leave_namespace
