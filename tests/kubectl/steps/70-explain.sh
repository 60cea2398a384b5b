# Explain: what the published schema says about every kind we serve. The descriptions are
# Kubernetes' own sentences; only names, types and what is required are compared.
shape="grep -E '^[A-Z]+:|	<'"
for path in configmap secret pod.spec.containers.resources pvc.spec pvc.spec.resources.requests pv.spec.csi \
    storageclass node.status namespace.status event.involvedObject lease.spec csidriver.spec csinode.spec.drivers \
    volumeattachment.spec.source csistoragecapacity volumeattributesclass service.spec.ports endpoints.subsets \
    serviceaccount.secrets crd.spec.names; do
    kf "$shape" explain $path
done
kf "$shape" explain configmap --recursive
kf "$shape" explain pvc --recursive
kf "$shape" explain pvc.spec --recursive
kf "$shape" explain events --api-version=events.k8s.io/v1
k explain pod.spec.containers.nothing
k explain nothing
kf "$shape" explain configmap.data.deeper
