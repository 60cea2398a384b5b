# Labels: add, overwrite, refuse to overwrite, remove, many at once, bad ones.
use_namespace label
quiet create configmap crate
quiet create configmap box
k label configmap crate colour=red size=big
k label configmap crate colour=blue
k label configmap crate colour=blue --overwrite
k label configmap crate colour=blue --overwrite
k label configmap crate size-
k label configmap crate size-
k label configmap --all shared=yes
k label configmap -l colour=blue picked=yes
k label configmap crate box both=yes
kf sort label configmap crate --list
k get configmap --show-labels
k label configmap crate stale=yes --resource-version=1
k label configmap crate tried=yes --dry-run=client
k label configmap crate tried=yes --dry-run=server
k get configmap -l tried
say "bad ones"
k label configmap crate 'colour=not good'
k label configmap crate '-bad=x'
k label configmap crate "long=$(printf 'x%.0s' {1..64})"
k label configmap missing a=b
k label namespace label team=mill
k get namespace -l team=mill --show-labels
leave_namespace
