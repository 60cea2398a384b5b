# Built-in kinds keep spec and status apart as well.
use_namespace status
quiet apply -f storage.yaml
quiet apply -f pod.yaml
quiet create -f - <<'YAML'
apiVersion: v1
kind: Node
metadata: {name: stone}
YAML
# door KIND NAME PATH PROGRAM SHOW: changes the object with a jq program and sends it through the status door.
door() {
    kubectl get "$1" "$2" -o json | jq "$4" >changed.json
    kf "jq -S -c '$5'" replace --raw "$3/status" -f changed.json
}
say "claim"
door pvc grain /api/v1/namespaces/status/persistentvolumeclaims/grain \
    '.status = {phase: "Bound", capacity: {storage: "5Gi"}, accessModes: ["ReadWriteOnce"]} | .spec.volumeName = "ignored" | .metadata.labels.new = "yes"' \
    '{status, spec: .spec.volumeName, labels: .metadata.labels}'
k get pvc grain
k patch pvc grain --type=merge -p '{"status":{"phase":"Lost"}}'
k get pvc grain -o jsonpath='{.status.phase}'
say "volume"
door pv cold-1 /api/v1/persistentvolumes/cold-1 '.status = {phase: "Available", message: "free"} | .spec.storageClassName = "ignored"' '{status: (.status | del(.lastPhaseTransitionTime)), spec: .spec.storageClassName}'
k get pv cold-1
say "bound, as the controllers do it"
k patch pv cold-1 --type=merge -p "{\"spec\":{\"claimRef\":{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"namespace\":\"status\",\"name\":\"grain\"}}}"
k patch pvc grain --type=merge -p '{"spec":{"volumeName":"cold-1"}}'
door pv cold-1 /api/v1/persistentvolumes/cold-1 '.status.phase = "Bound"' '.status.phase'
k get pv/cold-1 pvc/grain
k describe pvc grain
k describe pv cold-1
say "resizing"
k patch pvc grain --type=merge -p '{"spec":{"resources":{"requests":{"storage":"8Gi"}}}}'
k patch pvc grain --type=merge -p '{"spec":{"resources":{"requests":{"storage":"1Gi"}}}}'
say "pod"
door pod mill /api/v1/namespaces/status/pods/mill \
    '.status += {phase: "Running", podIP: "10.9.0.7", podIPs: [{ip: "10.9.0.7"}], containerStatuses: [{name: "grind", ready: true, restartCount: 2, image: "i", imageID: "x", state: {running: {startedAt: "2020-01-01T00:00:00Z"}}}, {name: "log", ready: false, restartCount: 0, image: "i", imageID: "x", state: {waiting: {reason: "ImagePullBackOff"}}}]} | .spec.containers[0].image = "ignored"' \
    '{phase: .status.phase, image: .spec.containers[0].image}'
k get pod mill
k get pod mill -o wide
k patch pod mill --type=merge -p '{"status":{"phase":"Failed"}}'
k get pod mill -o jsonpath='{.status.phase}'
say "node"
door node stone /api/v1/nodes/stone \
    '.status = {conditions: [{type: "Ready", status: "True", reason: "Up"}], capacity: {cpu: "4", memory: "8Gi"}, nodeInfo: {kubeletVersion: "v0", osImage: "Debian", kernelVersion: "6.1", containerRuntimeVersion: "none", machineID: "", systemUUID: "", bootID: "", kubeProxyVersion: "", operatingSystem: "linux", architecture: "amd64"}, addresses: [{type: "InternalIP", address: "10.9.0.1"}]} | .spec.unschedulable = true' \
    '{ready: .status.conditions[0].status, spec}'
k get node stone -o wide
k cordon stone
k get node stone
k uncordon stone
k taint node stone example.com/full=yes:NoSchedule
k get node stone -o jsonpath='{.spec}'
quiet delete node stone
quiet delete pod mill --force --grace-period=0
quiet delete pvc grain
quiet delete pv/cold-1 sc/cold
leave_namespace
