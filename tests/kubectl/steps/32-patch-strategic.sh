# Strategic merge patch: lists of built-in kinds are merged by key, and the $-directives.
use_namespace patch-strategic
quiet apply -f storage.yaml
quiet create -f - <<'YAML'
apiVersion: v1
kind: Service
metadata: {name: door, finalizers: [example.com/a]}
spec:
  clusterIP: None
  selector: {app: mill, stage: test}
  ports:
  - {name: web, port: 80, targetPort: 8080}
  - {name: admin, port: 81}
YAML
ports='{range .spec.ports[*]}{.name}{" "}{.port}{" "}{.targetPort}{"\n"}{end}{.spec.selector}{" "}{.metadata.finalizers}'
patch() {
    k patch service door -p "$1"
    k get service door -o jsonpath="$ports"
}
say "by key"
patch '{"spec":{"ports":[{"port":80,"targetPort":9090}]}}'
patch '{"spec":{"ports":[{"name":"metrics","port":9100}]}}'
patch '{"spec":{"selector":{"stage":null,"more":"yes"}}}'
patch '{"spec":{"ports":[{"port":81,"$patch":"delete"}]}}'
patch '{"spec":{"$setElementOrder/ports":[{"port":9100},{"port":80}],"ports":[{"port":80,"targetPort":7070}]}}'
say "replace and retain"
patch '{"spec":{"selector":{"$patch":"replace","only":"this"}}}'
patch '{"spec":{"ports":[{"$patch":"replace"},{"name":"single","port":443}]}}'
say "lists of plain values"
patch '{"metadata":{"finalizers":["example.com/b"]}}'
patch '{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a"]}}'
patch '{"metadata":{"finalizers":null}}'
say "nothing to do"
k patch service door -p '{"spec":{"selector":{"only":"this"}}}'
k patch service door -p '{}'
say "containers, environment, volumes of a pod"
quiet apply -f pod.yaml
k patch pod mill -p '{"spec":{"containers":[{"name":"grind","image":"example.com/grind:9"}]}}'
k get pod mill -o jsonpath='{.spec.containers[*].name} {.spec.containers[*].image}'
k patch pod mill -p '{"spec":{"containers":[{"name":"grind","env":[{"name":"GRADE","value":"4"}]}]}}'
k patch pod mill -p '{"spec":{"tolerations":[{"key":"a","operator":"Exists"}]}}'
k patch pod mill -p '{"metadata":{"labels":{"stage":null}}}'
k get pod mill --show-labels
say "conditions of a claim, through its status"
k patch pvc grain -p '{"spec":{"resources":{"requests":{"storage":"6Gi"}}}}'
k patch pv cold-1 -p '{"spec":{"capacity":{"storage":"11Gi"},"accessModes":["ReadWriteMany"]}}'
k get pv cold-1 -o jsonpath='{.spec.capacity} {.spec.accessModes}'
say "what does not fit"
k patch service door -p '{"spec":{"ports":[{"name":"no-port"}]}}'
k patch service door -p '{"spec":{"ports":"text"}}'
k patch service door -p '{"spec":{"ports":[{"port":80,"$patch":"shuffle"}]}}'
k patch service door -p 'text'
quiet delete pvc grain
quiet delete pv cold-1
quiet delete sc cold
leave_namespace
