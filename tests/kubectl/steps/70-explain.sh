# Explain: what the published schema says about every kind we serve.
for path in configmap secret pod.spec.containers.resources pvc.spec pvc.spec.resources.requests pv.spec.csi \
    storageclass node.status namespace.status event.involvedObject lease.spec csidriver.spec csinode.spec.drivers \
    volumeattachment.spec.source csistoragecapacity volumeattributesclass service.spec.ports endpoints.subsets \
    serviceaccount.secrets crd.spec.names; do
    k explain $path
done
k explain configmap --recursive
k explain pvc --recursive
k explain pvc.spec --recursive
k explain events --api-version=events.k8s.io/v1
k explain pod.spec.containers.nothing
k explain nothing
k explain configmap.data.deeper
