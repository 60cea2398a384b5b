# One object and many, in every output format.
use_namespace output
quiet apply -f storage.yaml
quiet apply -f pod.yaml
quiet create configmap alpha --from-literal=a=1
quiet create configmap beta --from-literal=b=2 --from-literal=c=3
quiet create secret generic key --from-literal=k=v
quiet create serviceaccount robot
quiet create -f - <<'YAML'
apiVersion: v1
kind: Service
metadata: {name: door}
spec:
  clusterIP: None
  selector: {app: mill}
  ports: [{port: 80}]
YAML

say "tables"
k get configmaps
k get configmap alpha beta
k get cm,secrets,pods
k get pods -o wide
k get pods --show-labels
k get pods -L app,stage
k get pods --no-headers
k get pvc
k get pvc -o wide
k get pv
k get pv -o wide
k get storageclass cold
k get sc cold -o wide
k get secrets
k get services
k get services -o wide
k get serviceaccounts
k get serviceaccount -o wide
k get configmap alpha --show-kind
k get configmap -A -l nothing=here
k get configmaps -l nothing=here
k get namespace output
k get ns output -o wide

say "names and paths"
k get pods,pvc -o name
k get configmap alpha -o name
k get configmap -o jsonpath='{range .items[*]}{.metadata.name}={.data}{"\n"}{end}'
k get pod mill -o jsonpath='{.spec.containers[?(@.name=="grind")].resources.limits.memory}'
k get pod mill -o custom-columns=NAME:.metadata.name,IMAGES:.spec.containers[*].image,NONE:.spec.nothing
k get configmap -o custom-columns=NAME:.metadata.name --sort-by=.metadata.name --no-headers
k get configmap --sort-by='{.data.b}'
k get configmap alpha -o go-template='{{.metadata.name}} {{index .data "a"}}{{"\n"}}'

say "whole objects"
k get configmap alpha -o json
k get configmap alpha beta -o json
k get pvc grain -o yaml
k get pv cold-1 -o yaml
k get sc cold -o yaml
k get serviceaccount robot -o yaml
k get configmap -l nothing=here -o json
k get -f pod.yaml
quiet delete pvc grain
quiet delete pv cold-1
quiet delete sc cold
leave_namespace
