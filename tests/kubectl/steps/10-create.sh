# Objects made from flags and from files, names that the server makes up.
use_namespace create
quiet delete namespace create-another --ignore-not-found
say "from flags"
k create configmap settings --from-literal=colour=green --from-literal=size=12
k create secret generic login --from-literal=user=alice --from-literal=password=s3cret
k create namespace create-another
k create serviceaccount robot
k create configmap settings --from-literal=colour=red
k get configmap settings -o yaml
k get secret login -o yaml
k get namespace create-another -o yaml
quiet delete namespace create-another

say "from a file and from standard input"
printf 'first line\nsecond line\n' >notes.txt
printf '\001\002\377\000bytes' >blob.bin
k create configmap from-files --from-file=notes.txt --from-file=blob=blob.bin
k get configmap from-files -o json
k create -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata:
  generateName: made-up-
  labels: {made: up}
data: {a: "1"}
YAML
k get configmap -l made=up
k create -f - <<'YAML'
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: one}
- apiVersion: v1
  kind: Secret
  metadata: {name: two}
  stringData: {key: value}
  data: {other: b2s=}
YAML
k get secret two -o json
k create -f - -o name <<'YAML'
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "three"}, "data": {"from": "json"}}
YAML
say "nothing is stored by a client-side dry run"
k create configmap imagined --from-literal=a=b --dry-run=client -o yaml
k get configmap imagined
leave_namespace
