# Describe for the kinds that storage people look at all day.
use_namespace describe-storage
quiet apply -f storage.yaml
quiet apply -f pod.yaml
quiet apply -f - <<'YAML'
apiVersion: v1
kind: Node
metadata:
  name: stone
  labels: {kubernetes.io/hostname: stone, node-role.kubernetes.io/storage: ""}
  annotations: {note: heavy}
spec:
  podCIDR: 10.9.0.0/24
  taints: [{key: example.com/only, value: storage, effect: NoSchedule}]
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: nobody.example.com}
spec: {attachRequired: true, podInfoOnMount: false}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: stone}
spec:
  drivers:
  - {name: nobody.example.com, nodeID: stone-1, topologyKeys: [example.com/rack], allocatable: {count: 8}}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: attach-1}
spec:
  attacher: nobody.example.com
  nodeName: stone
  source: {persistentVolumeName: cold-1}
YAML
k describe pvc grain
k describe pv cold-1
k describe storageclass cold
k describe node stone
k describe csinode stone
k describe csidriver nobody.example.com
k describe volumeattachment attach-1
k get node stone
k get node stone -o wide
k get csidriver nobody.example.com
k get csinode stone
k get volumeattachment attach-1
quiet delete node/stone csidriver/nobody.example.com csinode/stone volumeattachment/attach-1
quiet delete pod mill
quiet delete pvc grain
quiet delete pv cold-1
quiet delete sc cold
leave_namespace
