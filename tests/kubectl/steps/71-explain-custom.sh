# Explain works from the schema of a definition as well.
quiet apply -f silo-crd.yaml
quiet wait --for=condition=established --timeout=30s crd/silos.farm.example.com
quiet get silos -A
# Publishing the schema takes the server a moment.
for _ in $(seq 100); do
    if kubectl explain silo.spec.capacity 2>/dev/null | grep -q Tons; then break; fi
    sleep 0.2
done
shape="grep -E '^[A-Z]+:|	<'"
kf "$shape" explain silo
k explain silo.spec
k explain silo.spec.capacity
k explain silo.spec.doors
kf "$shape" explain silo --recursive
k explain silo.spec.nothing
kf "$shape" explain silo --api-version=farm.example.com/v1beta1
quiet delete crd silos.farm.example.com
