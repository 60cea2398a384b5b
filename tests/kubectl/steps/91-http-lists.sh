# Lists, tables, metadata only, collections: the wire as client libraries see it.
use_namespace http-lists
base=/api/v1/namespaces/http-lists/configmaps
quiet create configmap a --from-literal=x=1
quiet create configmap b --from-literal=x=2
quiet label configmap b pick=me
say "list kinds"
http GET "$base?labelSelector=none"
http GET "$base?fieldSelector=metadata.name%3Da"
http GET "/api/v1/configmaps?fieldSelector=metadata.namespace%3Dhttp-lists,metadata.name%3Db"
http GET $base/a
say "tables"
http GET "$base?limit=1&labelSelector=pick" -H 'Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json'
http GET "$base/a?includeObject=None" -H 'Accept: application/json;as=Table;v=v1;g=meta.k8s.io'
http GET "$base/a?includeObject=Object" -H 'Accept: application/json;as=Table;v=v1;g=meta.k8s.io'
http GET "$base/a?includeObject=Everything" -H 'Accept: application/json;as=Table;v=v1;g=meta.k8s.io'
http GET "$base/a" -H 'Accept: application/json;as=Table;v=v9;g=meta.k8s.io'
http GET "$base/missing" -H 'Accept: application/json;as=Table;v=v1;g=meta.k8s.io'
say "metadata only"
http GET "$base/a" -H 'Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
http GET "$base?labelSelector=pick" -H 'Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'
say "a collection is deleted"
http DELETE "$base?labelSelector=pick&dryRun=All"
http DELETE "$base?labelSelector=pick"
http DELETE "$base?fieldSelector=metadata.name%3Dnothing"
http DELETE "/api/v1/namespaces?labelSelector=nobody%3Dhas-this"
http GET "$base"
say "paging at the edge"
quiet create configmap c
kf "jq -Sc '[.items[].metadata.name, (.metadata.continue // \"\" | length > 0)]'" get --raw "$base?limit=2"
kf "jq -Sc '[.items[].metadata.name, (.metadata.continue // \"\" | length > 0)]'" get --raw "$base?limit=3"
say "versions"
http GET "$base?resourceVersion=0&labelSelector=none"
http GET "$base?resourceVersionMatch=NotOlderThan&labelSelector=none"
http GET "$base?resourceVersion=0&resourceVersionMatch=Exact"
leave_namespace
