//! Snapshots of a volume that is in use: one moment for all blocks and all replicas, and space that comes back.

use std::time::Duration;

use bytes::Bytes;
use granary_frontend::Volume;
use granary_frontend::nbd::NbdClient;

use crate::cluster::{Cluster, MIB, on_one_thread, said};
use crate::stamps::Stamps;

/// While the load, which lives on this thread, goes on.
async fn ctl_under_load(cluster: &Cluster, arguments: &[&str]) {
    let mut command = cluster.ctl_command("e", arguments);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_snapshot_under_load_is_one_moment_and_can_be_returned_to() {
    on_one_thread(async {
        let cluster = Cluster::new(64 * MIB);
        let engine = cluster.engine("e", &[]);
        let volume = cluster.client("e").await;
        let stamps = Stamps::new(512, 31);
        stamps.fill(&volume).await;
        let load = stamps.load(&volume);
        let mut moments = Vec::new();
        for number in 0..5 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let from = stamps.moment();
            ctl_under_load(&cluster, &["snapshot", "create", &format!("s{number}")]).await;
            moments.push((from, stamps.moment()));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        load.finish().await;
        let listed = cluster.ctl("e", &["snapshot", "list"]);
        let names: Vec<_> = listed["snapshots"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
        assert_eq!(names, ["s0", "s1", "s2", "s3", "s4"]);
        assert_eq!(cluster.ctl("e", &["metrics"])["errors"], 0);
        drop(volume);
        // Back, forth and back again: returning to one loses none of the others.
        for number in [3, 1, 4, 0] {
            let name = format!("s{number}");
            assert_eq!(cluster.ctl("e", &["verify", "--snapshot", &name])["equal"], true, "{name}");
            cluster.ctl("e", &["snapshot", "revert", &name]);
            let volume = cluster.client("e").await;
            stamps.check_moment(&volume, moments[number]).await;
            cluster.assert_equal("e");
        }
        let volume = cluster.client("e").await;
        let load = stamps.load(&volume);
        tokio::time::sleep(Duration::from_millis(200)).await;
        load.finish().await;
        stamps.check_acknowledged(&volume).await;
        engine.stop().await;
    });
}

/// 16 MiB out of the way of any load are this from now on.
async fn paint(volume: &NbdClient, byte: u8) {
    for at in 32..48 {
        volume.write(at * MIB, vec![byte; MIB as usize].into(), false).await.unwrap();
    }
    volume.flush().await.unwrap();
}

#[test]
fn removed_snapshots_give_their_space_back_under_load() {
    on_one_thread(async {
        let cluster = Cluster::new(64 * MIB);
        let engine = cluster.engine("e", &[]);
        let volume = cluster.client("e").await;
        let stamps = Stamps::new(256, 32);
        for layer in 1..=4 {
            paint(&volume, layer).await;
            cluster.ctl("e", &["snapshot", "create", &format!("s{layer}")]);
        }
        let full: Vec<_> = (0..3).map(|number| cluster.disk_usage(number)).collect();
        assert!(full.iter().all(|used| *used >= 64 * MIB), "{full:?}");

        let load = stamps.load(&volume);
        for name in ["s1", "s2", "s3"] {
            ctl_under_load(&cluster, &["snapshot", "remove", name]).await;
        }
        ctl_under_load(&cluster, &["snapshot", "purge", "--wait"]).await;
        load.finish().await;
        stamps.check_acknowledged(&volume).await;
        let less: Vec<_> = (0..3).map(|number| cluster.disk_usage(number)).collect();
        assert!(less.iter().all(|used| *used < 24 * MIB), "{less:?} bytes are used, {full:?} were before");
        let listed = cluster.ctl("e", &["snapshot", "list"]);
        assert_eq!(listed["snapshots"].as_array().unwrap().len(), 1, "{listed}");
        assert_eq!(listed["snapshots"][0]["name"], "s4");
        assert_eq!(volume.read(40 * MIB, 4096).await.unwrap(), Bytes::from(vec![4; 4096]));
        cluster.assert_equal("e");
        assert_eq!(cluster.ctl("e", &["verify", "--snapshot", "s4"])["equal"], true);
        drop(volume);
        cluster.ctl("e", &["snapshot", "revert", "s4"]);
        let volume = cluster.client("e").await;
        assert_eq!(volume.read(32 * MIB, 4096).await.unwrap(), Bytes::from(vec![4; 4096]));
        engine.stop().await;
    });
}

#[test]
fn a_chain_of_snapshots_has_an_end_and_says_how_to_go_on() {
    on_one_thread(async {
        let cluster = Cluster::with_flags(3, &["--size", "64MiB", "--max-snapshots", "4"]);
        let engine = cluster.engine("e", &[]);
        let volume = cluster.client("e").await;
        for number in 0..4_u8 {
            volume.write(0, vec![number; 4096].into(), true).await.unwrap();
            cluster.ctl("e", &["snapshot", "create", &format!("s{number}")]);
        }
        let refused = cluster.try_ctl("e", &["snapshot", "create", "one-too-many"]);
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        for words in ["5 are allowed", "remove snapshots and purge"] {
            assert!(said(&refused).contains(words), "{words} is missing in {}", said(&refused));
        }
        assert_eq!(cluster.states("e"), ["inSync"; 3], "nobody has to leave because of that");
        volume.write(0, vec![9; 4096].into(), true).await.unwrap();

        cluster.ctl("e", &["snapshot", "remove", "s1"]);
        let removed = cluster.try_ctl("e", &["snapshot", "revert", "s1"]);
        assert_eq!(removed.status.code(), Some(3), "{}", said(&removed));
        cluster.ctl("e", &["snapshot", "purge", "--wait"]);
        cluster.ctl("e", &["snapshot", "create", "fits-again"]);
        assert_eq!(cluster.ctl("e", &["status"])["snapshots"], 4);
        cluster.assert_equal("e");
        assert_eq!(volume.read(0, 4096).await.unwrap(), Bytes::from(vec![9; 4096]));
        engine.stop().await;
    });
}
