# Describe of a kind that the client has never heard of.
use_namespace describe-custom
quiet apply -f silo-crd.yaml
quiet wait --for=condition=established --timeout=30s crd/silos.farm.example.com
quiet get silos
quiet apply -f silo.yaml
k describe silo north
kf "sed '/^  Managed Fields:/,/^  Resource Version:/d; /Last Transition Time: /d'" describe crd silos.farm.example.com
quiet delete crd silos.farm.example.com
leave_namespace
