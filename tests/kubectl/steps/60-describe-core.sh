# Describe: what a person reads. It needs lists of related objects and of events to be right.
use_namespace describe
quiet create configmap settings --from-file=text=/dev/stdin <<<$'two\nlines'
quiet annotate configmap settings note=hello
quiet create secret generic login --from-literal=user=alice --from-literal=password=s3cret
quiet create serviceaccount robot
quiet apply -f storage.yaml
quiet apply -f pod.yaml
quiet create -f - <<'YAML'
apiVersion: v1
kind: Service
metadata: {name: door}
spec:
  clusterIP: None
  selector: {app: mill}
  ports: [{name: web, port: 80, targetPort: web}]
YAML
quiet create -f - <<'YAML'
apiVersion: v1
kind: Event
metadata: {name: mill.1}
involvedObject: {apiVersion: v1, kind: Pod, name: mill, namespace: describe}
reason: Ground
message: ten bags of flour
type: Normal
source: {component: miller, host: hill}
firstTimestamp: "2020-01-01T00:00:00Z"
lastTimestamp: "2020-01-01T00:00:00Z"
count: 3
YAML
k describe secret login
k describe serviceaccount robot
k describe namespace describe
k describe pod mill
k describe service door
k describe pod -l app=mill
k describe pod missing
k describe event mill.1
k describe configmaps
quiet delete pod mill
quiet delete pvc grain
quiet delete pv cold-1
quiet delete sc cold
leave_namespace
