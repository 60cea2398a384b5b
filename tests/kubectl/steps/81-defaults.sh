# What the server fills in when a manifest says as little as it may.
use_namespace defaults
full() { kf "jq -S 'del(.metadata.managedFields)'" get "$@" -o json; }
quiet create -f - <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: small}
spec:
  containers:
  - name: main
    image: example.com/main
    ports: [{containerPort: 80}]
    livenessProbe: {tcpSocket: {port: 80}}
    env: [{name: WHO, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    resources: {limits: {cpu: "1", memory: 1Gi}}
  - {name: tagged, image: "example.com/tagged:3"}
  volumes:
  - {name: c, configMap: {name: x}}
  - {name: s, secret: {secretName: x}}
  - {name: p, projected: {sources: [{configMap: {name: x}}]}}
  - {name: h, hostPath: {path: /x}}
  - {name: d, downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}
  - {name: i, iscsi: {targetPortal: "1.2.3.4", iqn: "iqn.2020-01.com.example:x", lun: 0}}
  - {name: r, rbd: {monitors: [a], image: b}}
  - {name: none}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: small}
spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: small}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /x}, storageClassName: none}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: small}
provisioner: nobody.example.com
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: small.example.com}
spec: {}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: small}
spec: {drivers: []}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: small}
spec: {attacher: nobody.example.com, nodeName: x, source: {persistentVolumeName: small}}
---
apiVersion: storage.k8s.io/v1
kind: CSIStorageCapacity
metadata: {name: small}
storageClassName: small
capacity: 10Gi
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: small}
driverName: nobody.example.com
parameters: {iops: "100"}
---
apiVersion: v1
kind: Node
metadata: {name: small}
---
apiVersion: v1
kind: Service
metadata: {name: small}
spec: {clusterIP: None, ports: [{port: 80}]}
---
apiVersion: v1
kind: Secret
metadata: {name: small}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: small}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: small}
---
apiVersion: v1
kind: Endpoints
metadata: {name: small-ep}
subsets: [{addresses: [{ip: 10.1.2.3}], ports: [{port: 80}]}]
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: small}
spec: {}
YAML
for kind in pod pvc pv storageclass csinode volumeattachment csistoragecapacity volumeattributesclass node service \
    secret configmap serviceaccount lease; do
    full $kind small
done
full csidriver small.example.com
full endpoints small-ep
say "tables of the same"
for kind in pod pvc pv storageclass csinode volumeattachment csistoragecapacity volumeattributesclass node service \
    secret configmap serviceaccount lease; do
    k get $kind small
    k get $kind small -o wide
done
k get csidriver small.example.com
k get endpoints small-ep
quiet delete pv/small sc/small csidriver/small.example.com csinode/small volumeattachment/small volumeattributesclass/small node/small
leave_namespace
