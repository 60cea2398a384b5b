# Client-side apply: three-way merge against the last-applied annotation.
use_namespace apply-client
cat >shop.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata:
  name: shop
  labels: {app: shop, tier: front}
data:
  colour: green
  size: "12"
YAML
say "create, again, change, remove a field"
k apply -f shop.yaml
k apply -f shop.yaml
sed -i 's/green/blue/; /size/d; s/, tier: front//' shop.yaml
tick
k apply -f shop.yaml
k get configmap shop -o yaml
k apply view-last-applied configmap/shop

say "what somebody else added stays, what they changed comes back"
tick
k patch configmap shop --type=merge -p '{"data":{"extra":"kept","colour":"changed"}}'
tick
k apply -f shop.yaml
k get configmap shop -o yaml

say "an object that was made without apply"
quiet create configmap bare --from-literal=a=1
cat >bare.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: bare}
data: {a: "2"}
YAML
k apply -f bare.yaml

say "several objects, one of them unchanged"
cat >several.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: bare}
data: {a: "2"}
---
apiVersion: v1
kind: Secret
metadata: {name: fresh}
stringData: {token: abc}
---
apiVersion: v1
kind: Service
metadata: {name: door}
spec:
  clusterIP: None
  selector: {app: shop}
  ports:
  - {name: web, port: 80, targetPort: 8080}
  - {name: admin, port: 81}
YAML
k apply -f several.yaml
k apply -f several.yaml

say "lists are merged by their key"
sed -i '/name: admin/d; s/targetPort: 8080/targetPort: web/' several.yaml
cat >>several.yaml <<'YAML'
  - {name: metrics, port: 9090}
YAML
k apply -f several.yaml
k get service door -o jsonpath='{range .spec.ports[*]}{.name}{" "}{.port}{" "}{.targetPort}{" "}{.protocol}{"\n"}{end}'

say "pods: an added label is fine, a changed spec is not"
cat >pod.yaml <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: worker}
spec:
  containers:
  - {name: main, image: "example.com/main:1"}
YAML
k apply -f pod.yaml
sed -i 's/metadata: .*/metadata: {name: worker, labels: {a: b}}/' pod.yaml
k apply -f pod.yaml
sed -i 's/main:1/main:2/' pod.yaml
k apply -f pod.yaml
cat >>pod.yaml <<'YAML'
  - {name: side, image: "example.com/side:1"}
YAML
k apply -f pod.yaml
leave_namespace
