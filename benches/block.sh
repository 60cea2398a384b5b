#!/usr/bin/env bash
# block.sh GRANARY [options]: measures one of our volumes with three replicas, a single copy behind
# qemu-storage-daemon (qsd) and a Gluster volume with three bricks, taking turns on this machine and on one
# disk, and prints a table of ratios and floors. A missed floor is marked and no failure: measuring is not a
# test. Every single run is kept in OUT (default: benches/out); the volumes are in a directory below
# GRANARY_CACHE that is removed at the end. --help lists the options.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/block/systems.sh"

all_jobs=(randread-32 randwrite-32 randread-1 randwrite-1 write-flush-1 seqread-8 seqwrite-8)

usage() {
    cat <<END
usage: block.sh GRANARY [options]
  --seconds N         how long each run of a job lasts (3)
  --rounds N          how often each job runs on each system (5)
  --size MIB          size of each volume (2048)
  --only JOB          only this job; several may be named, one option each:
                      ${all_jobs[*]}
  --without-gluster   leave Gluster out
  --realtime          servers and fio go before everything else on the machine; needs root
END
}

# One job for all systems; how fio reaches a volume is all that differs.
job_options() {
    case $1 in
        randread-32) echo "--rw=randread --bs=4k --iodepth=32" ;;
        randwrite-32) echo "--rw=randwrite --bs=4k --iodepth=32" ;;
        randread-1) echo "--rw=randread --bs=4k --iodepth=1" ;;
        randwrite-1) echo "--rw=randwrite --bs=4k --iodepth=1" ;;
        write-flush-1) echo "--rw=randwrite --bs=4k --iodepth=1 --fsync=1" ;;
        seqread-8) echo "--rw=read --bs=1m --iodepth=8" ;;
        seqwrite-8) echo "--rw=write --bs=1m --iodepth=8" ;;
    esac
}

case ${1:-} in
    -h | --help)
        usage
        exit 0
        ;;
esac
granary=$(realpath "${1:?usage: block.sh GRANARY [options]; --help lists them}")
shift
seconds=3 rounds=5 size=2048 realtime='' jobs=() systems=(ours qsd gluster)
while (($#)); do
    case $1 in
        --seconds) seconds=$2 && shift ;;
        --rounds) rounds=$2 && shift ;;
        --size) size=$2 && shift ;;
        --realtime) realtime=yes ;;
        --only)
            [[ " ${all_jobs[*]} " == *" $2 "* ]] || {
                echo "block.sh: there is no job $2; there are ${all_jobs[*]}" >&2
                exit 2
            }
            jobs+=("$2") && shift
            ;;
        --without-gluster) systems=(ours qsd) ;;
        *)
            usage >&2
            exit 2
            ;;
    esac
    shift
done
((${#jobs[@]})) || jobs=("${all_jobs[@]}")

out=${OUT:-$here/out}
cache=${GRANARY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/granary}
mkdir -p "$out" "$cache/bench-out"
# Seven copies of the volume, and as much again as two for what file systems and logs need.
needed=$((size * 9))
free=$(df --output=avail -BM "$cache/bench-out" | tr -dc '0-9\n' | tail -n 1)
if ((free < needed)); then
    echo "block.sh: $cache/bench-out has $free MiB free, and $needed are needed; use a smaller --size or another GRANARY_CACHE" >&2
    exit 1
fi

work=$(mktemp -d "$cache/bench-out/block.XXXXXX")
cleanup() {
    local system
    stop_child fio
    for system in ours qsd gluster; do "stop_$system" || true; done
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# What processes used so far, in clock ticks: user and system time.
ticks() {
    local pid
    for pid in "$@"; do cat "/proc/$pid/stat"; done | awk '{ sub(/.*\) /, ""); sum += $12 + $13 } END { print sum + 0 }'
}
# The same of this script's children that have ended: fio is the only one between two calls that counts.
ticks_of_children() { awk '{ sub(/.*\) /, ""); print $14 + $15 }' "/proc/$$/stat"; }

# run JOB SYSTEM ROUND FIO_OPTIONS...: one run of fio, one line in runs.json.
run() {
    local job=$1 system=$2 round=$3 pids server client
    shift 3
    read -ra pids < <("pids_$system" | paste -sd' ')
    server=$(ticks "${pids[@]}") client=$(ticks_of_children)
    # A round has its own sequence of offsets, the same for every system.
    # shellcheck disable=SC2046 # Words are wanted.
    alone fio --name="$job" --output-format=json --output="$work/fio.json" --randseed="$round" --norandommap \
        "$@" $("reach_$system" "$job") >"$work/fio.log" 2>&1 &
    child[fio]=$!
    if ! wait "${child[fio]}"; then
        echo "block.sh: fio failed on $system, $job:" >&2
        tail -n 20 "$work/fio.log" "$work/fio.json" >&2
        exit 1
    fi
    unset "child[fio]"
    client=$(($(ticks_of_children) - client)) server=$(($(ticks "${pids[@]}") - server))
    jq -c --arg job "$job" --arg system "$system" --argjson round "$round" --argjson server "$server" \
        --argjson client "$client" --argjson hertz "$(getconf CLK_TCK)" -f "$here/block/run.jq" \
        "$work/fio.json" >>"$work/runs.json"
    settle "$system"
}

# What one run left in the page cache must not be written during the next.
settle() { find "$work/$1" -type f -exec sync -d {} +; }

for system in "${systems[@]}"; do
    echo "starting $system" >&2
    "start_$system"
    run first-fill "$system" 0 --rw=write --bs=1m --iodepth=8 --end_fsync=1
    "check_$system"
done
for ((round = 1; round <= rounds; round++)); do
    for job in "${jobs[@]}"; do
        echo "round $round of $rounds: $job" >&2
        read -ra options < <(job_options "$job")
        # Who comes first changes from round to round.
        for ((turn = 0; turn < ${#systems[@]}; turn++)); do
            system=${systems[(round + turn) % ${#systems[@]}]}
            run "$job" "$system" "$round" "${options[@]}" --time_based --runtime="$seconds"
        done
    done
done
for system in "${systems[@]}"; do "check_$system"; done

jq -s -f "$here/block/summary.jq" "$work/runs.json" >"$out/block.json"
jq -r -f "$here/block/table.jq" "$out/block.json" | tee "$out/block.txt"
