# Watches: first what is there, then every change, with selectors deciding who comes and goes.
use_namespace watch
quiet create configmap old --from-literal=n=1
say "list, then watch"
watch_start get configmap -w
quiet create configmap new --from-literal=n=1
quiet label configmap old seen=yes
quiet delete configmap new
watch_end 5

say "only what comes"
watch_start get configmap --watch-only
quiet create configmap later --from-literal=n=1
quiet delete configmap later
watch_end 3

say "with the kind of each event"
watch_start get configmap --watch-only --output-watch-events
quiet create configmap third --from-literal=n=1
quiet patch configmap third --type=merge -p '{"data":{"n":"2"}}'
quiet patch configmap third --type=merge -p '{"data":{"n":"2"}}'
quiet delete configmap third
watch_end 4

say "an object that stops to match the selector leaves, one that starts to match comes"
watch_start get configmap -l side=in --watch-only --output-watch-events
quiet create configmap walker --from-literal=n=1
quiet label configmap walker side=in
quiet annotate configmap walker step=two
quiet label configmap walker side=out --overwrite
quiet delete configmap walker
watch_end 4

say "one object by name, as YAML"
watch_start get configmap old -w -o jsonpath='{.metadata.labels}{"\n"}'
quiet label configmap old seen=twice --overwrite
quiet create configmap unrelated
quiet label configmap old seen-
watch_end 3

say "a field selector"
watch_start get configmap --field-selector metadata.name=chosen --watch-only -o name
quiet create configmap chosen
quiet create configmap passed-over
watch_end 1

say "everything in the cluster"
watch_start get configmap -A -l watched=everywhere --watch-only -o name
quiet create configmap far
quiet label configmap far watched=everywhere
watch_end 1
leave_namespace
