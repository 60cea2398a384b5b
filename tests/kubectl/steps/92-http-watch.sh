# Watches on the wire: resuming, bookmarks, the initial list as events, versions that are too old.
use_namespace http-watch
base=/api/v1/namespaces/http-watch/configmaps
quiet create configmap a --from-literal=x=1
version=$(kubectl get --raw $base | jq -r .metadata.resourceVersion)
quiet create configmap b
quiet label configmap b l=1
quiet delete configmap a
# stream QUERY: what the server sends within two seconds, one short line per event.
stream() {
    note "> GET watch with $1"
    curl -sk -m 30 -H "Authorization: Bearer $TOKEN" "$SERVER_URL$base?watch=true&timeoutSeconds=2&$2" "${@:3}" |
        jq -Sc 'if .kind == "Status" then [.code, .message] else [.type, .object.kind, .object.metadata.name, .object.metadata.labels, .object.metadata.annotations, .object.code, .object.reason, .object.message] end' >>"$transcript"
}
say "from a version on: nothing is missed"
stream "a version" "resourceVersion=$version"
say "from now on, with what is there first"
stream "nothing" ""
stream "version 0" "resourceVersion=0"
stream "no initial events" "resourceVersion=$(kubectl get --raw $base | jq -r .metadata.resourceVersion)"
say "the initial list as events, closed by a bookmark"
stream "sendInitialEvents" "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
stream "sendInitialEvents, nothing there" "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=none"
stream "sendInitialEvents without the match" "sendInitialEvents=true&allowWatchBookmarks=true"
stream "sendInitialEvents without bookmarks" "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
http GET "$base?sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
http GET "$base?sendInitialEvents=true"
http GET "$base?watch=true&sendInitialEvents=true&timeoutSeconds=1"
http GET "$base?watch=true&resourceVersionMatch=Exact&timeoutSeconds=1"
say "too old, or not there yet"
stream "version 1" "resourceVersion=1"
http GET "$base?watch=true&resourceVersion=text"
say "selectors"
stream "a label from a version" "resourceVersion=$version&labelSelector=l%3D1"
stream "a field from a version" "resourceVersion=$version&fieldSelector=metadata.name%3Da"
say "as tables and as metadata"
stream "tables" "resourceVersion=$version" -H 'Accept: application/json;as=Table;v=v1;g=meta.k8s.io'
stream "metadata" "resourceVersion=$version" -H 'Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
say "the older way to ask"
curl -sk -m 30 -H "Authorization: Bearer $TOKEN" "$SERVER_URL/api/v1/watch/namespaces/http-watch/configmaps?timeoutSeconds=1" |
    jq -Sc '[.type, .object.metadata.name]' >>"$transcript"
leave_namespace
