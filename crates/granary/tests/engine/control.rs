//! What an operator does with a volume that is well, and what is told when a command is wrong.

use bytes::Bytes;
use granary_frontend::Volume;

use crate::cluster::{Cluster, MIB, Process, exists, on_one_thread, said};

fn filled(byte: u8, len: usize) -> Bytes {
    vec![byte; len].into()
}

#[test]
fn a_volume_is_written_kept_turned_back_and_grown() {
    on_one_thread(async {
        let cluster = Cluster::new(64 * MIB);
        let engine = cluster.engine("e", &["--size", "64MiB"]);
        let volume = cluster.client("e").await;
        volume.write(10, filled(1, 100_000), false).await.unwrap();
        assert_eq!(cluster.ctl("e", &["snapshot", "create", "one", "--label", "why=test"])["name"], "one");
        volume.write(10, filled(2, 100_000), false).await.unwrap();
        cluster.ctl("e", &["snapshot", "create", "two"]);
        volume.zero(0, MIB, false, true).await.unwrap();

        let snapshots = cluster.ctl("e", &["snapshot", "list"])["snapshots"].clone();
        let family = |at: usize| (snapshots[at]["name"].clone(), snapshots[at]["parent"].clone());
        assert_eq!(family(0), ("one".into(), "".into()));
        assert_eq!(family(1), ("two".into(), "one".into()));
        assert_eq!(snapshots[1]["children"][0], "volume-head");
        assert_eq!(snapshots[0]["labels"]["why"], "test");
        assert!(snapshots[0]["allocated"].as_u64().unwrap() >= 100_000);
        cluster.assert_equal("e");

        let refused = cluster.try_ctl("e", &["snapshot", "create", "one"]);
        assert_eq!(refused.status.code(), Some(4), "{}", said(&refused));
        let refused = cluster.try_ctl("e", &["snapshot", "revert", "none"]);
        assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));

        drop(volume);
        cluster.ctl("e", &["snapshot", "revert", "one"]);
        let volume = cluster.client("e").await;
        assert_eq!(volume.read(10, 100_000).await.unwrap(), filled(1, 100_000));
        cluster.ctl("e", &["snapshot", "remove", "two"]);
        cluster.ctl("e", &["snapshot", "purge", "--wait"]);
        let shown = cluster.ctl_text("e", &["snapshot", "list"]);
        assert!(shown.contains("one") && !shown.contains("two"), "{shown}");
        assert_eq!(volume.read(10, 100_000).await.unwrap(), filled(1, 100_000));

        cluster.ctl("e", &["expand", "96MiB"]);
        let refused = cluster.try_ctl("e", &["expand", "1MiB"]);
        assert!(said(&refused).contains("cannot shrink"), "{}", said(&refused));
        let larger = cluster.client("e").await;
        assert_eq!(*larger.size().borrow(), 96 * MIB);
        larger.write(95 * MIB, filled(3, 4096), true).await.unwrap();
        cluster.assert_equal("e");
        let metrics = cluster.ctl("e", &["metrics"]);
        assert_eq!(metrics["errors"], 0);
        assert!(metrics["writeLatency"]["count"].as_u64().unwrap() >= 3, "{metrics}");
        engine.stop().await;
        assert!(
            !exists(&cluster.path("e.ctl")) && !exists(&cluster.path("e.nbd")),
            "sockets are left behind"
        );

        let engine = cluster.engine("e", &[]);
        assert!(engine.line.contains(&format!("size={}", 96 * MIB)), "{}", engine.line);
        let metrics = cluster.ctl("e", &["metrics"]);
        assert_eq!(metrics["reconciledBytes"], 0, "after a clean end there is nothing to compare");
        let volume = cluster.client("e").await;
        assert_eq!(volume.read(95 * MIB, 4096).await.unwrap(), filled(3, 4096));
        assert_eq!(cluster.ctl("e", &["close"])["message"], "the engine has stopped");
    });
}

#[test]
fn replicas_leave_and_join_while_it_serves() {
    on_one_thread(async {
        let cluster = Cluster::new(64 * MIB);
        let engine = cluster.engine("e", &[]);
        let volume = cluster.client("e").await;
        volume.write(0, filled(7, 4 * MIB as usize), false).await.unwrap();
        let gone = cluster.addresses[2].as_str();
        cluster.ctl("e", &["replica", "remove", gone]);
        assert_eq!(cluster.states("e"), ["inSync", "inSync"]);
        let refused = cluster.try_ctl("e", &["replica", "remove", gone]);
        assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
        volume.write(MIB, filled(8, MIB as usize), false).await.unwrap();
        cluster.ctl("e", &["replica", "add", gone]);
        cluster.until_states("e", &["inSync"; 3]).await;
        let fourth = Process::start(cluster.replica_command(3, "127.0.0.1:0"));
        let address = fourth.line.split(' ').nth(1).unwrap();
        cluster.ctl("e", &["rebuild-rate", "1GiB"]);
        cluster.ctl("e", &["replica", "add", address]);
        cluster.until_states("e", &["inSync"; 4]).await;
        let verdict = cluster.ctl_text("e", &["verify"]);
        assert!(verdict.contains("all 4 replicas in sync are equal"), "{verdict}");
        cluster.ctl("e", &["qos", "--iops", "100000", "--bandwidth", "1GiB"]);
        let status = cluster.ctl_text("e", &["status"]);
        for word in ["vol", "serving", "64 MiB", "inSync", "100000 requests/s", address] {
            assert!(status.contains(word), "{word} is missing in {status}");
        }
        engine.stop().await;
    });
}

#[test]
fn mistakes_are_told_with_the_way_out() {
    on_one_thread(async {
        let cluster = Cluster::new(64 * MIB);
        let refused = |name: &str, flags: &[&str], words: &[&str]| {
            let output = cluster.engine_command(name, flags).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{flags:?}: {}", said(&output));
            assert!(output.stdout.is_empty(), "it said that it is ready");
            for word in words {
                assert!(said(&output).contains(word), "{word} is missing in {}", said(&output));
            }
        };
        let wrong = cluster.path("wrong-key");
        refused(
            "e",
            &["--key-file", wrong.to_str().unwrap(), "--start-timeout", "1"],
            &["the key", &cluster.addresses[0]],
        );
        refused("e", &["--size", "1GiB"], &["engine-ctl expand"]);
        refused("e", &["--control", "tcp://0.0.0.0:0"], &["loopback"]);
        refused("e", &["--takeover", &cluster.url("nobody")], &["no engine answers"]);
        let missing = cluster.try_ctl("e", &["status"]);
        assert_eq!(missing.status.code(), Some(7), "{}", said(&missing));

        let engine = cluster.engine("e", &[]);
        refused("e", &[], &["another engine listens"]);
        refused("f", &["--takeover", &cluster.url("e")], &["same frontends"]);
        let bad = cluster.try_ctl("e", &["replica", "add", "nowhere"]);
        assert_eq!(bad.status.code(), Some(2), "{}", said(&bad));
        assert_eq!(cluster.ctl("e", &["status"])["state"], "serving");
        engine.stop().await;
    });
}
