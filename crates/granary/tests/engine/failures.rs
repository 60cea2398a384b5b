//! Processes that die, hang or are started twice, under load.

use std::time::Duration;

use granary_frontend::Volume;
use rustix::process::Signal;

use crate::cluster::{Cluster, MIB, on_one_thread};
use crate::stamps::Stamps;

async fn pause() {
    tokio::time::sleep(Duration::from_millis(400)).await;
}

#[test]
fn a_replica_that_was_away_gets_only_what_changed() {
    on_one_thread(async {
        let mut cluster = Cluster::new(256 * MIB);
        let engine = cluster.engine("e", &[]);
        let volume = cluster.client("e").await;
        // Much that stays as it is, and a little at the front that changes.
        for at in 1..8 {
            volume.write(at * 32 * MIB, vec![at as u8; 8 * MIB as usize].into(), false).await.unwrap();
        }
        let stamps = Stamps::new(512, 1);
        stamps.fill(&volume).await;
        let load = stamps.load(&volume);
        pause().await;
        let before = cluster.ctl("e", &["metrics"]);
        cluster.kill_replica(1);
        pause().await;
        cluster.until_states("e", &["inSync", "away", "inSync"]).await;
        pause().await;
        cluster.start_replica(1);
        cluster.until_states("e", &["inSync"; 3]).await;
        pause().await;
        load.finish().await;
        cluster.assert_equal("e");
        stamps.check_acknowledged(&volume).await;
        let metrics = cluster.ctl("e", &["metrics"]);
        let grown = |name: &str| metrics[name].as_u64().unwrap() - before[name].as_u64().unwrap();
        assert_eq!(
            (grown("errors"), grown("rebuildsDone"), grown("replicaFailures")),
            (0, 1, 1),
            "{metrics}"
        );
        let copied = grown("rebuildBytesCopied");
        assert!(copied > 0 && copied <= 16 * MIB, "{copied} bytes were copied, of 58 MiB");
        engine.stop().await;
    });
}

#[test]
fn a_killed_engine_loses_nothing_that_was_flushed() {
    on_one_thread(async {
        let cluster = Cluster::new(64 * MIB);
        let stamps = Stamps::new(1024, 2);
        for _ in 0..4 {
            let engine = cluster.engine("e", &[]);
            let volume = cluster.client("e").await;
            stamps.check_flushed(&volume).await;
            cluster.assert_equal("e");
            let load = stamps.load(&volume);
            pause().await;
            engine.kill();
            load.torn_away().await;
        }
        let engine = cluster.engine("e", &[]);
        stamps.check_flushed(&cluster.client("e").await).await;
        cluster.assert_equal("e");
        assert!(stamps.writes() > 100, "the load did next to nothing");
        engine.stop().await;
    });
}

#[test]
fn everything_is_killed_and_nothing_flushed_is_lost() {
    on_one_thread(async {
        let mut cluster = Cluster::new(64 * MIB);
        let stamps = Stamps::new(1024, 3);
        for round in 0..3 {
            let engine = cluster.engine("e", &[]);
            let volume = cluster.client("e").await;
            stamps.check_flushed(&volume).await;
            let load = stamps.load(&volume);
            pause().await;
            cluster.kill_replica(round);
            pause().await;
            engine.kill();
            for number in (0..3).filter(|number| *number != round) {
                cluster.kill_replica(number);
            }
            load.torn_away().await;
            for number in 0..3 {
                cluster.start_replica(number);
            }
        }
        let engine = cluster.engine("e", &[]);
        stamps.check_flushed(&cluster.client("e").await).await;
        cluster.until_states("e", &["inSync"; 3]).await;
        cluster.assert_equal("e");
        engine.stop().await;
    });
}

#[test]
fn a_replica_that_hangs_is_left_behind_and_taken_back() {
    on_one_thread(async {
        let cluster = Cluster::new(64 * MIB);
        let engine = cluster.engine("e", &[]);
        let volume = cluster.client("e").await;
        let stamps = Stamps::new(512, 4);
        let load = stamps.load(&volume);
        pause().await;
        let hanging = cluster.replicas[0].as_ref().unwrap();
        hanging.signal(Signal::STOP);
        cluster.until_states("e", &["away", "inSync", "inSync"]).await;
        let before = stamps.writes();
        pause().await;
        assert!(stamps.writes() > before, "writes go on without it");
        hanging.signal(Signal::CONT);
        cluster.until_states("e", &["inSync"; 3]).await;
        pause().await;
        load.finish().await;
        stamps.check_acknowledged(&volume).await;
        cluster.assert_equal("e");
        engine.stop().await;
    });
}

#[test]
fn of_two_engines_the_older_one_ends_and_says_why() {
    on_one_thread(async {
        let cluster = Cluster::new(64 * MIB);
        let mut older = cluster.engine("older", &[]);
        let volume = cluster.client("older").await;
        let stamps = Stamps::new(512, 5);
        let load = stamps.load(&volume);
        pause().await;
        let newer = cluster.engine("newer", &[]);
        assert_eq!(older.ended().await.code(), Some(8), "fenced has an exit code of its own");
        load.torn_away().await;
        let volume = cluster.client("newer").await;
        stamps.check_acknowledged(&volume).await;
        cluster.assert_equal("newer");
        newer.stop().await;
    });
}

#[test]
fn it_stops_even_when_its_replicas_are_gone() {
    on_one_thread(async {
        let mut cluster = Cluster::new(64 * MIB);
        let mut engine = cluster.engine("e", &["--stall-timeout", "1"]);
        let volume = cluster.client("e").await;
        let stamps = Stamps::new(512, 6);
        let load = stamps.load(&volume);
        pause().await;
        for number in 0..3 {
            cluster.kill_replica(number);
        }
        engine.signal(Signal::TERM);
        engine.ended().await;
        load.torn_away().await;
        for number in 0..3 {
            cluster.start_replica(number);
        }
        let engine = cluster.engine("e", &[]);
        stamps.check_flushed(&cluster.client("e").await).await;
        engine.stop().await;
    });
}
