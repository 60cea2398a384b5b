# Diff: exit code 0 for nothing to do, 1 for changes, more for trouble.
export KUBECTL_EXTERNAL_DIFF="diff -u -N --label live --label merged -r"
use_namespace diff
cat >roof.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: roof}
data: {made: tin, slope: "30"}
YAML
say "new"
kf "grep -v '^diff '" diff -f roof.yaml
quiet apply -f roof.yaml
# Both sides of a diff name the time of the last change; it has to differ.
tick
say "nothing to do"
k diff -f roof.yaml
say "changed"
sed -i 's/tin/straw/; s/, slope: "30"//' roof.yaml
kf "grep -E '^[-+] '" diff -f roof.yaml
kf "grep -E '^[-+] '" diff --server-side --force-conflicts -f roof.yaml
say "would not be accepted"
k diff -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: Roof}
YAML
leave_namespace
