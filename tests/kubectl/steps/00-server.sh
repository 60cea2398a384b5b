# Is anybody there, and what does it say of itself?
k get --raw /healthz
k get --raw /livez
k get --raw /readyz
kf 'jq -S "{major, minor}"' get --raw /version
k cluster-info
k get --raw /nothing-here
