# Replaces what differs between any two runs by a placeholder. What a server decides stays, save the
# wording of Go's own diff of two structures (cut by order.awk). Used with sed -E.

# uids, resource versions, times
s/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/<uid>/g
s/(resourceVersion\\*"?: ?\\*")[0-9]+/\1<version>/g
s/(Resource Version: +)[0-9]+/\1<version>/
s/(in record) \([0-9]+\)/\1 (<version>)/
s/(too old resource version: [0-9]+) \([0-9]+\)/\1 (<version>)/
s/(Too large resource version: )[0-9]+, current: [0-9]+/\1<version>, current: <version>/
s/\b(continue=)[A-Za-z0-9]{20,}/\1<token>/g
s/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z/<time>/g
s/[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?( \+0000)?( UTC)?/<time>/g
s/(Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} \+0000/<time>/g

# ages, with the padding that follows from their width
s/(^| )(<invalid>|[0-9]+s|[0-9]+m[0-9]+s)( {2,}|$)/\1<age>  /g
s/(^| )(<invalid>|[0-9]+s|[0-9]+m[0-9]+s) \(x([0-9]+) over (<invalid>|[0-9]+s|[0-9]+m[0-9]+s)\)/\1<age> (x\3 over <age>)/g
s/(^| )AGE +([A-Z])/\1AGE  \2/
s/^( +)"[0-9]+s"(,?)$/\1"<age>"\2/

# names that the server makes up after a prefix that our manifests use
s/made-up-[bcdfghjklmnpqrstvwxz2456789]{5}/made-up-<random>/g

# a whole object quoted in a message: the order of its keys means nothing
s/(Invalid value: \\*")\{.*\}(\\*": )/\1<object>\2/g

# addresses and files of this run
s#https://(127\.0\.0\.1|localhost|\[::1\]):[0-9]+#https://<server>#g
s#/tmp/[A-Za-z0-9._/-]+#<file>#g

s/ +$//
