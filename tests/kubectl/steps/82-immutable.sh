# What may not change, and what a built-in kind refuses from the start.
use_namespace immutable
quiet apply -f storage.yaml
merge() { k patch "$1" "$2" --type=merge -p "$3"; }
say "claims, volumes and classes"
merge pvc grain '{"spec":{"storageClassName":"warm"}}'
merge pvc grain '{"spec":{"accessModes":["ReadWriteMany"]}}'
merge pvc grain '{"spec":{"resources":{"requests":{"storage":"6Gi"}}}}'
merge pvc grain '{"spec":{"volumeName":"cold-1"}}'
merge pvc grain '{"spec":{"volumeName":"other"}}'
merge pv cold-1 '{"spec":{"csi":{"volumeHandle":"other"}}}'
merge pv cold-1 '{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}'
merge pv cold-1 '{"spec":{"volumeMode":"Block"}}'
merge sc cold '{"parameters":{"speed":"fast"}}'
merge sc cold '{"provisioner":"other.example.com"}'
merge sc cold '{"reclaimPolicy":"Delete"}'
merge sc cold '{"volumeBindingMode":"Immediate"}'
merge sc cold '{"allowVolumeExpansion":false}'
quiet create -f - <<'YAML'
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: nobody.example.com}
spec: {attachRequired: true}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: attach-1}
spec: {attacher: nobody.example.com, nodeName: x, source: {persistentVolumeName: cold-1}}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: gold}
driverName: nobody.example.com
parameters: {iops: "100"}
YAML
merge csidriver nobody.example.com '{"spec":{"attachRequired":false}}'
merge csidriver nobody.example.com '{"spec":{"podInfoOnMount":true}}'
merge volumeattachment attach-1 '{"spec":{"nodeName":"y"}}'
merge volumeattributesclass gold '{"parameters":{"iops":"200"}}'
say "secrets and settings that were sealed"
quiet create -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: sealed}
immutable: true
data: {a: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: sealed}
immutable: true
stringData: {a: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: typed}
type: example.com/mine
YAML
merge configmap sealed '{"data":{"a":"2"}}'
merge configmap sealed '{"immutable":false}'
merge configmap sealed '{"metadata":{"labels":{"a":"b"}}}'
merge secret sealed '{"stringData":{"a":"2"}}'
merge secret typed '{"type":"Opaque"}'
say "pods"
quiet apply -f pod.yaml
merge pod mill '{"spec":{"restartPolicy":"Always"}}'
merge pod mill '{"spec":{"nodeName":"stone"}}'
merge pod mill '{"spec":{"activeDeadlineSeconds":50}}'
merge pod mill '{"spec":{"terminationGracePeriodSeconds":1}}'
say "what is never one's own to set"
merge configmap sealed '{"metadata":{"creationTimestamp":"2020-01-01T00:00:00Z"}}'
merge configmap sealed '{"metadata":{"uid":"other"}}'
merge configmap sealed '{"metadata":{"generation":7}}'
merge configmap sealed '{"metadata":{"selfLink":"/x"}}'
merge configmap sealed '{"metadata":{"generateName":"x-"}}'
say "refused from the start"
refuse() { k create --validate=false -f -; }
refuse <<'YAML'
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: bad}
spec: {}
YAML
refuse <<'YAML'
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: bad}
spec: {accessModes: [Sometimes], resources: {requests: {storage: "-1"}}}
YAML
refuse <<'YAML'
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: bad}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: lots}}}
YAML
refuse <<'YAML'
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: bad}
spec: {accessModes: [ReadWriteOnce, ReadWriteOncePod], volumeMode: Tape, resources: {requests: {storage: 1}}, storageClassName: Not_Good}
YAML
refuse <<'YAML'
apiVersion: v1
kind: PersistentVolume
metadata: {name: bad}
spec: {}
YAML
refuse <<'YAML'
apiVersion: v1
kind: PersistentVolume
metadata: {name: bad}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: ../x}
  nfs: {server: s, path: /p}
  persistentVolumeReclaimPolicy: Burn
YAML
refuse <<'YAML'
apiVersion: v1
kind: PersistentVolume
metadata: {name: bad}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  csi: {driver: "", volumeHandle: ""}
YAML
refuse <<'YAML'
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: bad}
reclaimPolicy: Burn
volumeBindingMode: Later
YAML
refuse <<'YAML'
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: Bad_Name}
spec: {volumeLifecycleModes: [Forever]}
YAML
refuse <<'YAML'
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: bad}
spec: {attacher: "", nodeName: "", source: {}}
YAML
refuse <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: bad}
spec: {}
YAML
refuse <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: bad}
spec:
  restartPolicy: Maybe
  containers:
  - {name: A_B, image: ""}
  - name: twin
    image: x
    volumeMounts: [{name: nowhere, mountPath: /x}]
    ports: [{containerPort: 70000}]
    resources: {requests: {cpu: 2}, limits: {cpu: 1}}
  - {name: twin, image: x}
YAML
refuse <<'YAML'
apiVersion: v1
kind: Secret
metadata: {name: bad}
type: kubernetes.io/tls
YAML
refuse <<'YAML'
apiVersion: v1
kind: Service
metadata: {name: 9bad}
spec: {ports: [{port: 0}, {port: 1}]}
YAML
refuse <<'YAML'
apiVersion: v1
kind: Node
metadata: {name: Bad_Node}
spec: {taints: [{key: "", effect: Sometimes}]}
YAML
quiet delete pod mill
quiet delete pvc grain
quiet delete pv/cold-1 sc/cold csidriver/nobody.example.com volumeattachment/attach-1 volumeattributesclass/gold
leave_namespace
