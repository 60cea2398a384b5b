//! Volumes much larger than the disks they are on.

use bytes::Bytes;
use granary_frontend::Volume;

use crate::cluster::{Cluster, MIB, on_one_thread};

const LARGE: u64 = 64 << 40;
/// What the process of a volume with next to nothing in it may take.
const BOUND: u64 = 128 * MIB;

#[test]
fn a_volume_of_64_tib_is_written_to_its_end_and_costs_what_it_holds() {
    on_one_thread(async {
        let mut cluster = Cluster::with_flags(3, &["--size", "64TiB"]);
        let end = LARGE - 4096;
        for round in 1..=3_u8 {
            let engine = cluster.engine("e", &["--size", "64TiB"]);
            let volume = cluster.client("e").await;
            assert_eq!(*volume.size().borrow(), LARGE);
            for at in [0, LARGE / 2, end] {
                let before = Bytes::from(vec![round - 1; 4096]);
                assert_eq!(volume.read(at, 4096).await.unwrap(), before, "at {at}");
                volume.write(at, vec![round; 4096].into(), true).await.unwrap();
            }
            cluster.ctl("e", &["snapshot", "create", &format!("round-{round}")]);
            assert_eq!(cluster.ctl("e", &["verify"])["equal"], true);
            for process in cluster.replicas.iter().flatten().chain([&engine]) {
                let peak = process.peak_memory();
                assert!(peak < BOUND, "{} MiB: {}", peak / MIB, process.line);
            }
            // In order or not, the next start must not look at all of it.
            if round == 2 {
                engine.kill();
                for replica in 0..3 {
                    cluster.kill_replica(replica);
                    cluster.start_replica(replica);
                }
            } else {
                engine.stop().await;
            }
        }
        for replica in 0..3 {
            let used = cluster.disk_usage(replica);
            assert!(used < 16 * MIB, "{used} bytes are used for nine blocks");
        }
    });
}
