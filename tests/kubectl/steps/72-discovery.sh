# Discovery: what there is, under which names, with which verbs.
ours='(configmaps|endpoints|events|namespaces|nodes|persistentvolumeclaims|persistentvolumes|pods|secrets|serviceaccounts|services|customresourcedefinitions|leases|csidrivers|csinodes|csistoragecapacities|storageclasses|volumeattachments|volumeattributesclasses) '
kf "grep -E '^(NAME|$ours)' | tr -s ' '" api-resources
kf "grep -E '^(NAME|$ours)' | tr -s ' '" api-resources -o wide
kf "grep -E '^$ours' | tr -s ' '" api-resources --namespaced=false
kf "grep -E '^$ours' | tr -s ' '" api-resources --namespaced=true --no-headers
k api-resources --api-group=storage.k8s.io
k api-resources --api-group=storage.k8s.io -o wide
k api-resources --api-group=coordination.k8s.io -o name
k api-resources --api-group=events.k8s.io -o wide
k api-resources --api-group=apiextensions.k8s.io -o wide
k api-resources --api-group=nothing.example.com
kf "grep -E '^(v1|storage.k8s.io/v1|coordination.k8s.io/v1|events.k8s.io/v1|apiextensions.k8s.io/v1)\$'" api-versions
say "the documents themselves"
kf "jq -S 'del(.serverAddressByClientCIDRs)'" get --raw /api
kf "jq -S '.resources |= map(select(.name | test(\"^(configmaps|namespaces|persistentvolume|pods\$|pods/status|secrets|nodes|events|services|serviceaccounts\$|endpoints)\"))) | del(.resources[] | select(.name | test(\"proxy\")))'" get --raw /api/v1
for group in storage.k8s.io/v1 coordination.k8s.io/v1 events.k8s.io/v1 apiextensions.k8s.io/v1; do
    kf "jq -S ." get --raw /apis/$group
    kf "jq -S ." get --raw /apis/${group%/*}
done
kf "jq -S '.groups |= (map(select(.name | test(\"^(storage|coordination|events|apiextensions).k8s.io\$\"))) | sort_by(.name))'" get --raw /apis
k get --raw /apis/nothing.example.com
k get --raw /apis/nothing.example.com/v1
k get --raw /api/v2
