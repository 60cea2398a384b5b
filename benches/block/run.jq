# One run of fio as one line: what was done, how long it took, and what processor time it used.
.jobs[0] as $fio
| (if $fio.read.total_ios > 0 then $fio.read else $fio.write end) as $side
| $side.total_ios as $ios
| if $fio.error != 0 or $ios == 0 then error("fio did nothing: \($fio.error)") else . end
| {
    job: $job, system: $system, round: $round, ios: $ios,
    per_second: ($ios * 1000 / $side.runtime),
    mib_per_second: ($side.io_bytes / 1048576 * 1000 / $side.runtime),
    mean_us: ($side.lat_ns.mean / 1000),
    p99_us: (($side.clat_ns.percentile["99.000000"] // 0) / 1000),
    flushes: ($fio.sync.total_ios // 0),
    server_us: ($server * 1000000 / $hertz / $ios),
    client_us: ($client * 1000000 / $hertz / $ios)
  }
