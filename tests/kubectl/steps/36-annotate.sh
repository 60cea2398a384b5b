# Annotations: add, overwrite, refuse to overwrite, remove, any text as value.
use_namespace annotate
quiet create configmap crate
k annotate configmap crate note='any text: {"even": [1]}' second=2
k annotate configmap crate note=other
k annotate configmap crate note=other --overwrite
k annotate configmap crate second-
k annotate configmap crate second-
k annotate configmap --all all=yes
k get configmap crate -o jsonpath='{.metadata.annotations}'
k annotate configmap crate 'bad key=x'
k annotate configmap crate "UPPER.example.com/ok=x"
head -c 300000 /dev/zero | tr '\0' x >big
note "(an annotation of 300000 bytes)"
kubectl get configmap crate -o json | jq --rawfile big big '.metadata.annotations.big = $big' >crate.json
k replace -f crate.json
leave_namespace
