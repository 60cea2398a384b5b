# Requests that kubectl would never send: bodies, media types, methods, sizes.
use_namespace http
base=/api/v1/namespaces/http/configmaps
json='Content-Type: application/json'
say "bodies"
http POST $base -H "$json" -d ''
http POST $base -H "$json" -d '{'
http POST $base -H "$json" -d '[]'
http POST $base -H "$json" -d '"text"'
http POST $base -H "$json" -d '{}'
http POST $base -H "$json" -d '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}'
http POST $base -H "$json" -d '{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"x"}}'
http POST $base -H "$json" -d '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"other"}}'
http POST $base -H "$json" -d '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":1}}'
http POST $base -H "$json" -d '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","resourceVersion":"5"}}'
http POST $base -H "$json" -d '{"metadata":{"name":"short"}}'
http POST $base -H 'Content-Type: application/yaml' --data-binary $'metadata:\n  name: yaml\ndata: {a: "1"}\n'
http POST $base -H 'Content-Type: application/yaml' --data-binary $'a: [1\n'
http POST $base/short -H "$json" -d '{"metadata":{"name":"short"}}'
http PUT $base/short -H "$json" -d '{"metadata":{"name":"other"}}'
http PUT $base/short -H "$json" -d '{"metadata":{"name":"short","resourceVersion":"0"},"data":{"a":"1"}}'
http PUT $base/short -H "$json" -d '{"metadata":{"name":"short","resourceVersion":"text"}}'
http PUT $base/short -H "$json" -d '{"metadata":{"name":"short","resourceVersion":"1"}}'
http PUT $base/nowhere -H "$json" -d '{"metadata":{"name":"nowhere"}}'
http PUT $base -H "$json" -d '{}'
say "media types"
http POST $base -H 'Content-Type: text/plain' -d '{}'
http POST $base -H 'Content-Type: application/xml' -d '<x/>'
http PATCH $base/short -H "$json" -d '{}'
http PATCH $base/short -H 'Content-Type: application/merge-patch+json' -d '{"data":{"m":"1"}}'
http PATCH $base/short -H 'Content-Type: application/merge-patch+json' -d '{'
http PATCH $base/short -H 'Content-Type: application/apply-patch+yaml' -d 'data: {}'
http PATCH "$base/short?fieldManager=me" -H 'Content-Type: application/apply-patch+yaml' -d 'data: {}'
http PATCH "$base/short?fieldManager=me" -H 'Content-Type: application/apply-patch+yaml' -d '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other"}}'
http PATCH "$base/applied?fieldManager=me" -H 'Content-Type: application/apply-patch+yaml' -d '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"1"}}'
http PATCH "$base/short?force=true" -H 'Content-Type: application/merge-patch+json' -d '{}'
http GET $base/short -H 'Accept: application/xml'
http GET $base/short -H 'Accept: text/html'
http GET $base/short -H 'Accept: application/yaml'
http GET $base/short -H 'Accept: */*'
say "patches that do not fit"
http PATCH $base/short -H 'Content-Type: application/json-patch+json' -d '[{"op":"test","path":"/data/a","value":"other"}]'
http PATCH $base/short -H 'Content-Type: application/json-patch+json' -d '[{"op":"remove","path":"/data/missing"}]'
http PATCH $base/short -H 'Content-Type: application/json-patch+json' -d '[{"op":"dance","path":"/data/a"}]'
http PATCH $base/short -H 'Content-Type: application/json-patch+json' -d '[{"op":"add","path":"data"}]'
http PATCH $base/nowhere -H 'Content-Type: application/merge-patch+json' -d '{}'
say "methods and paths"
http PUT /api/v1/namespaces -H "$json" -d '{}'
http PATCH $base -H 'Content-Type: application/merge-patch+json' -d '{}'
http POST /api -d ''
http TRACE $base
http GET /api/v1/nothings
http GET /api/v1/namespaces/http/nothings
http GET /api/v1/namespaces/http/configmaps/short/nothing
http GET /apis/storage.k8s.io/v9/storageclasses
http GET /api/v1/namespaces/http/nodes
http POST /api/v1/configmaps -H "$json" -d '{"metadata":{"name":"x"}}'
say "parameters"
http GET "$base?limit=text"
http GET "$base?labelSelector=a%20b%20c"
http GET "$base?fieldSelector=x.y%3D1"
http GET "$base?resourceVersion=text"
http GET "$base?resourceVersion=999999999"
http GET "$base?resourceVersionMatch=Exact"
http GET "$base?resourceVersion=0&resourceVersionMatch=Sometimes"
http GET "$base?watch=1&resourceVersion=text"
http GET "$base?timeoutSeconds=text"
http DELETE "$base/short?propagationPolicy=Sometimes"
http DELETE "$base/short" -H "$json" -d '{"gracePeriodSeconds":"x"}'
http DELETE "$base/short" -H "$json" -d '{"orphanDependents":true,"propagationPolicy":"Background"}'
http POST "$base?fieldManager=$(printf 'x%.0s' {1..129})" -H "$json" -d '{"metadata":{"name":"manager"}}'
say "size"
head -c 3145000 /dev/zero | tr '\0' x >filler
{ printf '{"metadata":{"name":"large"},"data":{"a":"'; cat filler; printf '"}}'; } >large.json
http POST $base -H "$json" --data-binary @large.json
{ printf '{"metadata":{"name":"large"},"data":{"a":"'; cat filler filler; printf '"}}'; } >large.json
http POST $base -H "$json" --data-binary @large.json
leave_namespace
