# The words that the steps are written in. Sourced once per step, in a shell of its own.
#   k ARGS         run kubectl and record command, output and exit code
#   quiet ARGS     run kubectl as scenery: not recorded, must succeed
#   http METHOD P  send a request as it is and record status and body (sorted JSON)
# Nothing here may know which server it talks to.

transcript=$OUTDIR/raw/$STEP.txt
work=$(mktemp -d)
rm -f "$transcript" "$OUTDIR/$STEP.txt"
cd "$work" || exit 1
cp "$MANIFESTS"/*.yaml .

finish() {
    local job
    for job in $(jobs -p); do
        kill "$job" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap finish EXIT

kubectl() { timeout 90 "$KUBECTL_PROGRAM" --kubeconfig "$KUBECONFIG" "$@"; }

# ---- recording ----

say() { printf '\n## %s\n' "$*" >>"$transcript"; }

# note_if_same A B SAME DIFFERENT: records which of the two it is.
note_if_same() { if [[ "$1" == "$2" ]]; then note "$3"; else note "$4"; fi; }

note() { printf '%s\n' "$*" >>"$transcript"; }

# Standard error comes after standard output, marked with "! ", so that the two never interleave.
record() {
    local code=$1
    cat "$work/stdout" >>"$transcript"
    # A last line without its newline must not swallow what follows.
    if [[ -s "$work/stdout" && -n "$(tail -c1 "$work/stdout")" ]]; then echo >>"$transcript"; fi
    sed 's/^/! /' "$work/stderr" >>"$transcript"
    if [[ -s "$work/stderr" && -n "$(tail -c1 "$work/stderr")" ]]; then echo >>"$transcript"; fi
    if ((code != 0)); then echo "[exit $code]" >>"$transcript"; fi
}

# The code is left in $code for steps that want to look at it.
k() {
    printf '$ kubectl %s\n' "$*" >>"$transcript"
    code=0
    kubectl "$@" >"$work/stdout" 2>"$work/stderr" || code=$?
    record "$code"
}

# kf FILTER ARGS: as `k`, with the output sent through a shell filter, for output that lists more
# than the kinds under comparison.
kf() {
    local filter=$1
    shift
    printf '$ kubectl %s | %s\n' "$*" "$filter" >>"$transcript"
    code=0
    kubectl "$@" >"$work/unfiltered" 2>"$work/stderr" || code=$?
    bash -c "$filter" <"$work/unfiltered" >"$work/stdout" || true
    record "$code"
}

quiet() {
    if ! kubectl "$@" >"$work/stdout" 2>"$work/stderr"; then
        echo "step $STEP: scenery failed: kubectl $*" >&2
        cat "$work/stdout" "$work/stderr" >&2
        exit 1
    fi
}

# http METHOD PATH [curl arguments]: what kubectl cannot or would not send. BEARER sets another token,
# or none when it is empty. The texts that describe columns are Kubernetes' own and not compared.
http() {
    local method=$1 path=$2 bearer=${BEARER-$TOKEN} identity=()
    shift 2
    if [[ -n "$bearer" ]]; then identity=(-H "Authorization: Bearer $bearer"); fi
    printf '> %s %s\n' "$method" "$path" >>"$transcript"
    local status attempt
    # A server may answer and hang up while curl still sends a body; then curl loses the answer.
    for attempt in {1..40}; do
        status=$(curl -sk -m 30 -X "$method" -o "$work/stdout" -w '%{http_code} %{content_type}' \
            "${identity[@]}" "$SERVER_URL$path" "$@") && break
        status="no answer in $attempt attempts"
        sleep 0.1
    done
    printf '< %s\n' "$status" >>"$transcript"
    : >"$work/stderr"
    if jq -S 'del(.columnDefinitions[]?.description)' "$work/stdout" >"$work/sorted" 2>/dev/null; then mv "$work/sorted" "$work/stdout"; fi
    record 0
    : >"$work/stdout"
}

# ---- scenery ----

needs_kubectl() { if ((KUBECTL_MINOR < $1)); then exit 0; fi; }

# A namespace of the step's own, gone afterwards; `k` and `quiet` use it by default.
use_namespace() {
    namespace=$1
    kubectl delete namespace "$namespace" --ignore-not-found --timeout=60s >/dev/null 2>&1 || true
    quiet create namespace "$namespace"
    kubectl() { timeout 90 "$KUBECTL_PROGRAM" --kubeconfig "$KUBECONFIG" -n "$namespace" "$@"; }
}

leave_namespace() { quiet delete namespace "$namespace" --wait=false; }

# Entries of managedFields are ordered by time, which has whole seconds: a change that has to come
# after another one waits for the clock.
tick() { sleep "$(date +%N | awk '{ printf "%.3f", 1.02 - $1 / 1e9 }')"; }

# eventually ARGS WANTED: polls until the output of kubectl is WANTED; some work is done in the background.
eventually() {
    local wanted=${*: -1} deadline=$((SECONDS + 60)) seen
    while ((SECONDS < deadline)); do
        seen=$(kubectl "${@:1:$#-1}" 2>/dev/null || true)
        if [[ "$seen" == "$wanted" ]]; then return; fi
        sleep 0.2
    done
    note "(waited in vain for '$wanted' from: kubectl ${*:1:$#-1}; last: '$seen')"
}

gone() { eventually get "$@" --ignore-not-found -o name ""; }

# ---- watches ----

# watch_start ARGS: begins `kubectl get … -w` in the background and returns when the server has
# accepted the watch, which -v=6 tells us on standard error.
watch_start() {
    printf '$ kubectl %s &\n' "$*" >>"$transcript"
    # Not left to the redirection, which happens in the background.
    : >"$work/watch.out"
    : >"$work/watch.err"
    timeout 60 "$KUBECTL_PROGRAM" --kubeconfig "$KUBECONFIG" -n "${namespace:-default}" "$@" -v=6 \
        >"$work/watch.out" 2>"$work/watch.err" &
    watch_pid=$!
    local deadline=$((SECONDS + 30))
    until grep -Eq 'watch=true.*200 OK|watch=true.*status="?200' "$work/watch.err"; do
        if ((SECONDS > deadline)) || ! kill -0 "$watch_pid" 2>/dev/null; then break; fi
        sleep 0.1
    done
}

# watch_end LINES: waits until the watch has printed that many lines, then ends and records it.
watch_end() {
    local lines=$1 deadline=$((SECONDS + 20))
    until (($(wc -l <"$work/watch.out") >= lines)) || ((SECONDS > deadline)); do sleep 0.1; done
    # A little longer, so that a line too many is seen as well.
    sleep 0.3
    kill "$watch_pid" 2>/dev/null || true
    wait "$watch_pid" 2>/dev/null || true
    note "(the watch said)"
    cp "$work/watch.out" "$work/stdout"
    grep -Ev '^[IW][0-9]{4} ' "$work/watch.err" >"$work/stderr" || true
    record 0
}
