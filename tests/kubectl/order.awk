# Puts into order what a server may say in any order, and cuts what no imitation should copy.

# The fields of an invalid object are looked at in the order of a hash map; old clients describe a secret so.
/^! \* / || /^[^ ]+: +[0-9]+ bytes$/ { lines[++count] = $0; next }
count { flush_lines() }

# Go's diff of two structures, which the server appends to some refusals.
/^! @@ -[0-9]+,[0-9]+ \+[0-9]+,[0-9]+ @@/ { in_diff = 1; print "! <diff>"; next }
in_diff && /^!/ { next }
{ in_diff = 0; print }

END { if (count) flush_lines() }

function flush_lines(    i, j, held) {
    for (i = 2; i <= count; i++) {
        held = lines[i]
        for (j = i - 1; j >= 1 && lines[j] > held; j--) lines[j + 1] = lines[j]
        lines[j + 1] = held
    }
    for (i = 1; i <= count; i++) print lines[i]
    count = 0
}
