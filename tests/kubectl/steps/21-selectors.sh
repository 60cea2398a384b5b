# Label selectors with every operator, field selectors on every field that a kind offers.
use_namespace selectors
for spec in 'red app=mill,tier=front' 'green app=mill,tier=back' 'blue app=shop,tier=front' 'bare none=here'; do
    read -r name labels <<<"$spec"
    quiet create configmap "$name" --from-literal=name="$name"
    quiet label configmap "$name" ${labels//,/ }
done
say "labels"
for selector in app=mill app==mill app!=mill app '!app' 'app in (mill, shop)' 'app notin (mill)' \
    'app=mill,tier=front' 'app,tier!=front' 'tier in (back),app=mill' 'app=' 'app in ()' 'none' 'app=nothing'; do
    k get configmap -l "$selector" -o name
done
k get configmap -l 'app=mill=twice'
k get configmap -l 'app in mill'
k get configmap -l 'UPPER/x/y=1'

say "fields"
k get configmap --field-selector metadata.name=red -o name
k get configmap --field-selector metadata.name!=red -o name
k get configmap --field-selector metadata.name==red,metadata.namespace=selectors -o name
k get configmap --field-selector metadata.name=red -l app=shop -o name
k get configmap -A --field-selector metadata.namespace=selectors -o name
k get configmap --field-selector data.name=red
k get configmap --field-selector metadata.name
quiet apply -f pod.yaml
quiet create -f - <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: placed}
spec:
  nodeName: somewhere
  restartPolicy: Always
  serviceAccountName: robot
  containers: [{name: main, image: example.com/main}]
YAML
for selector in spec.nodeName=somewhere spec.nodeName!=somewhere spec.nodeName= spec.restartPolicy=Never \
    status.phase=Pending status.phase!=Pending spec.serviceAccountName=robot spec.schedulerName=default-scheduler \
    status.podIP= status.nominatedNodeName= spec.hostNetwork=false spec.image=x; do
    k get pods --field-selector "$selector" -o name
done
k get secrets --field-selector type=Opaque -o name
quiet create secret generic key --from-literal=a=b
k get secrets --field-selector type=Opaque -o name
k get secrets --field-selector type!=Opaque -o name
k get namespaces --field-selector metadata.name=selectors,status.phase=Active -o name
k get namespaces --field-selector status.phase=Terminating,metadata.name=selectors -o name
k get pvc --field-selector status.phase=Bound
k get pv --field-selector spec.capacity=1
k get sc --field-selector metadata.name=nothing
k get nodes --field-selector spec.unschedulable=true -o name
k delete pods --field-selector metadata.name=mill --now
quiet delete pod placed --force --grace-period=0
leave_namespace
