# Leases: what leader election leans on.
use_namespace leases
k apply -f - <<'YAML'
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: leader}
spec:
  holderIdentity: one
  leaseDurationSeconds: 15
  acquireTime: "2020-01-01T00:00:00.000001Z"
  renewTime: "2020-01-01T00:00:10.500000Z"
  leaseTransitions: 1
YAML
k get leases
k get lease leader -o wide
k get lease leader -o jsonpath='{.spec.holderIdentity} {.spec.leaseDurationSeconds} {.spec.leaseTransitions}'
kf "jq -c .spec" get lease leader -o json
k describe lease leader
kubectl get lease leader -o json >mine.json
quiet patch lease leader --type=merge -p '{"spec":{"holderIdentity":"two"}}'
k replace -f mine.json
k patch lease leader --type=merge -p '{"spec":{"leaseDurationSeconds":0}}'
k patch lease leader --type=merge -p '{"spec":{"leaseTransitions":-1}}'
k patch lease leader --type=merge -p '{"spec":{"renewTime":"soon"}}'
k patch lease leader --type=merge -p '{"spec":{"renewTime":"2020-01-01T00:00:10.5Z"}}'
leave_namespace
