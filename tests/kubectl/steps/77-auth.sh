# Who may do what: the administrator, the reader, and strangers.
use_namespace auth
quiet create configmap there --from-literal=a=1
say "the administrator"
k auth can-i create configmaps
k auth can-i '*' '*'
k auth can-i delete persistentvolumes -q
k auth can-i get pods/log
say "the reader"
k auth can-i get configmaps --context=reader
k auth can-i create configmaps --context=reader
k auth can-i delete nodes --context=reader
k --context=reader get configmap there -o name
k --context=reader get configmap -A -l none=here
k --context=reader get secrets
k --context=reader get secret some -o name
k --context=reader create configmap no
k --context=reader delete configmap there
k --context=reader patch configmap there --type=merge -p '{"data":{"a":"2"}}'
k --context=reader label namespace auth a=b
k --context=reader delete configmap --all
say "strangers"
k --token=wrong get configmap there
k --token= --user=nobody get configmap there
BEARER=wrong http GET /api/v1/namespaces/auth/configmaps
BEARER='' http GET /api/v1/namespaces/auth/configmaps
BEARER='' http GET /healthz
BEARER=wrong http GET /healthz
say "asked directly"
http POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews -H 'Content-Type: application/json' \
    -d '{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":"create","resource":"configmaps","namespace":"auth"}}}'
leave_namespace
