#!/usr/bin/env bash
# compare.sh REAL OURS [STEP...]: holds the transcripts of our server against those of the real one.
# A line that differs must be accepted by a rule in differences.tsv, and a rule that accepts nothing any
# more is reported too. Exit code 0: nothing unexplained; 1: something is.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
real=${1:?usage: compare.sh REAL OURS [STEP...]}
ours=${2:?usage: compare.sh REAL OURS [STEP...]}
shift 2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
client=$(cat "$ours/client" 2>/dev/null || echo '*')

steps=("$@")
if ((${#steps[@]} == 0)); then
    mapfile -t steps < <(cd "$real" && printf '%s\n' *.txt | sed 's/\.txt$//')
fi

# One line per difference: step, side, text. Only lines of one side count; how diff groups them does not.
for step in "${steps[@]}"; do
    if [[ ! -f "$ours/$step.txt" ]]; then
        printf '%s\tours\t(the step is missing)\n' "$step"
        continue
    fi
    diff "$real/$step.txt" "$ours/$step.txt" |
        sed -n "s/^< /$step\treal\t/p; s/^<\$/$step\treal\t/p; s/^> /$step\tours\t/p; s/^>\$/$step\tours\t/p" || true
done >"$work/differences"

awk -F '\t' -v client="$client" -v steps=" ${steps[*]} " '
    function glob(pattern, text) {
        gsub(/\./, "\\.", pattern)
        gsub(/\*/, ".*", pattern)
        return text ~ "^(" pattern ")$"
    }
    FNR == NR {
        if ($0 == "" || /^#/) next
        if (NF != 5) { printf "differences.tsv:%d: five columns wanted, %d found\n", FNR, NF; broken = 1; next }
        if ($1 != "*" && $1 != client) next
        rules++; step[rules] = $2; side[rules] = $3; text[rules] = $4; line[rules] = FNR; used[rules] = 0
        next
    }
    {
        explained = 0
        for (i = 1; i <= rules; i++)
            if ((side[i] == "*" || side[i] == $2) && glob(step[i], $1) && $3 ~ text[i]) { used[i]++; explained = 1 }
        if (explained) { accepted++; next }
        unexplained[$1]++; total++
    }
    END {
        for (i = 1; i <= rules; i++)
            if (!used[i] && (index(steps, " " step[i] " ") || step[i] ~ /\*/)) {
                printf "differences.tsv:%d: accepts nothing any more: %s %s %s\n", line[i], step[i], side[i], text[i]
                broken = 1
            }
        for (s in unexplained) print "unexplained\t" s "\t" unexplained[s]
        printf "%d differences unexplained, %d accepted (kubectl %s)\n", total, accepted, client
        exit (total || broken) ? 1 : 0
    }' "$here/differences.tsv" "$work/differences" >"$work/report" && verdict=0 || verdict=1

sed -n 's/^unexplained\t\([^\t]*\)\t.*/\1/p' "$work/report" | sort | while read -r step; do
    echo "=== $step"
    if [[ -f "$ours/$step.txt" ]]; then
        diff -U 4 --label real --label ours "$real/$step.txt" "$ours/$step.txt" || true
    else
        echo "the step is missing"
    fi
done
sed 's/^unexplained\t\(.*\)\t\(.*\)/\1: \2 lines differ/' "$work/report"
exit "$verdict"
