# `kubectl edit` with an editor that is a script.
use_namespace edit
quiet create configmap page --from-literal=text=hello
KUBE_EDITOR="sed -i s/hello/goodbye/" k edit configmap page
KUBE_EDITOR="sed -i s/nothing-of-this/x/" k edit configmap page
KUBE_EDITOR="sed -i s/goodbye/again/" k edit configmap page -o json
k get configmap page -o jsonpath='{.data.text}'
leave_namespace
