# Wait: for a condition, for a deletion, in vain; newer clients also for a path.
use_namespace wait
quiet apply -f pod.yaml
say "in vain"
k wait pod/mill --for=condition=Ready --timeout=1s
k wait pod/missing --for=condition=Ready --timeout=1s
say "a condition that comes later"
pod=/api/v1/namespaces/wait/pods/mill
(
    sleep 1
    kubectl get pod mill -o json | jq '.status.conditions = [{type: "Ready", status: "True"}] | .status.phase = "Running"' >ready.json
    kubectl replace --raw $pod/status -f ready.json >/dev/null
) &
k wait pod/mill --for=condition=Ready --timeout=30s
wait $!
k wait pod -l app=mill --for=condition=Ready --timeout=30s
k wait pod/mill --for=condition=Ready=False --timeout=1s
k get pod mill
say "a deletion"
(
    sleep 1
    kubectl delete pod mill --grace-period=0 --force >/dev/null 2>&1
) &
k wait pod/mill --for=delete --timeout=30s
wait $!
k wait pod/mill --for=delete --timeout=1s
if ((KUBECTL_MINOR >= 24)); then
    say "a path"
    quiet apply -f storage.yaml
    k wait pvc/grain --for=jsonpath='{.status.phase}'=Pending --timeout=5s
    k wait pvc/grain --for=jsonpath='{.status.phase}'=Bound --timeout=1s
    k wait configmap/never --for=create --timeout=1s
    quiet delete pvc grain
    quiet delete pv cold-1
    quiet delete sc cold
fi
leave_namespace
