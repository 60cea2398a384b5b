# From all runs: the median, the lowest and the highest of each job on each system, and how ours compares.
# A ratio is that of the medians; its range is that of the rounds, each compared within itself.
def median: sort | if length % 2 == 1 then .[length / 2 | floor] else (.[length / 2 - 1] + .[length / 2]) / 2 end;
def spread: { median: median, min: min, max: max };

{
  "randread-32": { title: "4 KiB random read, depth 32", qsd: 1.2, gluster: 2.5 },
  "randwrite-32": { title: "4 KiB random write, depth 32", qsd: 0.6, gluster: 5 },
  "randread-1": { title: "4 KiB random read, depth 1", qsd: 1.0, gluster: 2.2 },
  "randwrite-1": { title: "4 KiB random write, depth 1", qsd: 0.6, gluster: 1.0 },
  "write-flush-1": { title: "4 KiB random write + flush, depth 1", qsd: 0.6, gluster: 2.2 },
  "seqread-8": { title: "1 MiB sequential read, depth 8", unit: "MiB/s", qsd: 1.2, gluster: 1.1 },
  "seqwrite-8": { title: "1 MiB sequential write, depth 8", unit: "MiB/s", qsd: 0.6, gluster: 1.8 },
  "first-fill": { title: "first fill of an empty volume, flushed", unit: "MiB/s" }
} as $known
| . as $runs
| [ $known | keys_unsorted[] as $job | .[$job] as $about
    | [$runs[] | select(.job == $job)] as $of_job | select($of_job | length > 0)
    | (if $about.unit then "mib_per_second" else "per_second" end) as $field
    | ([$of_job[] | select(.system == "ours") | { key: "\(.round)", value: .[$field] }] | from_entries) as $ours
    | {
        job: $job, title: $about.title, unit: ($about.unit // "I/Os per second"),
        systems: [ ("ours", "qsd", "gluster") as $system
          | [$of_job[] | select(.system == $system)] | select(length > 0)
          | {
              system: $system,
              value: (map(.[$field]) | spread),
              server_us: (map(.server_us) | median),
              all_us: (map(.server_us + .client_us) | median),
              p99_us: (map(.p99_us) | median)
            }
            + if $system == "ours" or ($ours | length) == 0 then {} else {
                ratio: (($ours | [.[]] | median) / (map(.[$field]) | median)),
                ratios: (map($ours["\(.round)"] / .[$field]) | spread),
                floor: $about[$system]
              } end ]
      } ]
| { jobs: ., runs: $runs }
