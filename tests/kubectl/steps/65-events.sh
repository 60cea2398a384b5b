# Events in both of their shapes: one store, two groups.
use_namespace events
quiet create -f - <<'YAML'
apiVersion: v1
kind: Event
metadata: {name: mill.1}
involvedObject: {apiVersion: v1, kind: Pod, name: mill, namespace: events, uid: u-1}
reason: Ground
message: ten bags of flour
type: Normal
source: {component: miller}
firstTimestamp: "2020-01-01T00:00:00Z"
lastTimestamp: "2020-01-01T00:00:00Z"
count: 3
---
apiVersion: v1
kind: Event
metadata: {name: grain.1}
involvedObject: {apiVersion: v1, kind: PersistentVolumeClaim, name: grain, namespace: events}
reason: ProvisioningFailed
message: no room left
type: Warning
source: {component: keeper}
reportingComponent: keeper
firstTimestamp: "2020-01-01T00:00:00Z"
lastTimestamp: "2020-01-01T00:00:00Z"
count: 1
YAML
columns=custom-columns=NAME:.metadata.name,TYPE:.type,REASON:.reason,OBJECT:.involvedObject.name,COUNT:.count
k get events -o $columns
for selector in type=Warning type!=Warning reason=Ground involvedObject.name=grain involvedObject.kind=Pod \
    involvedObject.uid=u-1 involvedObject.namespace=events source=miller reportingComponent=keeper \
    involvedObject.kind=Pod,involvedObject.name=mill nonsense=1; do
    k get events --field-selector $selector -o name
done
kf "sed -E 's/^[0-9]+[a-z0-9]*  +/<age>   /'" get events
say "the other shape"
k get events.events.k8s.io mill.1 -o json
k create -f - <<'YAML'
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: new.1}
eventTime: "2020-01-01T00:00:00.123456Z"
reportingController: example.com/miller
reportingInstance: miller-1
action: Grinding
reason: Ground
regarding: {apiVersion: v1, kind: Pod, name: mill, namespace: events}
note: seen from the other side
type: Normal
YAML
k get events new.1 -o json
k get events.events.k8s.io -o name
say "refused"
k create -f - <<'YAML'
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: bad.1}
regarding: {apiVersion: v1, kind: Pod, name: mill, namespace: events}
reason: Ground
YAML
k create -f - <<'YAML'
apiVersion: v1
kind: Event
metadata: {name: bad.2}
involvedObject: {kind: Pod, name: mill, namespace: elsewhere}
YAML
leave_namespace
