//! Processes that die, hang or are started twice, under load.

use std::time::{Duration, Instant};

use granary_frontend::Volume;
use granary_frontend::nbd::NbdClient;
use rustix::process::Signal;

use crate::cluster::{Cluster, HANGS, MIB, Process, on_one_thread, said};
use crate::stamps::{BLOCK, Stamps};

async fn pause() {
    tokio::time::sleep(Duration::from_millis(400)).await;
}

/// A volume of which much stays as it is, and a little at the front changes.
struct Busy {
    cluster: Cluster,
    stamps: Stamps,
}

/// What stays, in bytes, and what may change.
const QUIET: u64 = 56 * MIB;
const LIVELY: u64 = 2 * MIB;

impl Busy {
    async fn new(seed: u64) -> (Self, Process, NbdClient) {
        let cluster = Cluster::new(256 * MIB);
        let engine = cluster.engine("e", &[]);
        let volume = cluster.client("e").await;
        for at in 1..8 {
            volume.write(at * 32 * MIB, vec![at as u8; QUIET as usize / 7].into(), false).await.unwrap();
        }
        let stamps = Stamps::new(LIVELY as usize / BLOCK, seed);
        stamps.fill(&volume).await;
        (Self { cluster, stamps }, engine, volume)
    }

    async fn more_writes(&self, count: u64) {
        let (before, began) = (self.stamps.writes(), Instant::now());
        while self.stamps.writes() < before + count {
            assert!(began.elapsed() < HANGS, "nothing is written");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Bytes that changed since.
    fn changed(&self, since: &[u64]) -> u64 {
        let now = self.stamps.versions();
        (now.iter().zip(since).filter(|(now, since)| now != since).count() * BLOCK) as u64
    }

    /// What `rebuild-status` says while a rebuild runs, which it does slowly so that it can be seen.
    async fn rebuild(&self) -> serde_json::Value {
        let began = Instant::now();
        loop {
            let status = self.cluster.ctl("e", &["rebuild-status"]);
            let rebuild = status["replicas"][0]["rebuild"].clone();
            if rebuild["bytesTotal"].as_u64().is_some_and(|total| total > 0) {
                return rebuild;
            }
            assert!(began.elapsed() < HANGS, "no rebuild begins: {status}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn metric(&self, name: &str) -> u64 {
        self.cluster.ctl("e", &["metrics"])[name].as_u64().unwrap()
    }
}

#[test]
fn a_replica_that_was_away_gets_only_what_changed() {
    on_one_thread(async {
        let (mut busy, engine, volume) = Busy::new(1).await;
        let load = busy.stamps.load(&volume);
        busy.more_writes(100).await;
        let copied_before = busy.metric("rebuildBytesCopied");
        busy.cluster.kill_replica(1);
        busy.cluster.until_states("e", &["inSync", "away", "inSync"]).await;
        let since = busy.stamps.versions();
        tokio::time::sleep(Duration::from_secs(3)).await;
        busy.more_writes(100).await;
        let changed = busy.changed(&since);
        busy.cluster.ctl("e", &["rebuild-rate", "256KiB"]);
        busy.cluster.start_replica(1);
        let rebuild = busy.rebuild().await;
        assert_eq!(rebuild["kind"], "delta", "{rebuild}");
        let total = rebuild["bytesTotal"].as_u64().unwrap();
        assert!((changed..=2 * LIVELY).contains(&total), "{total} bytes are to be copied, {changed} changed");
        busy.cluster.ctl("e", &["rebuild-rate", "0"]);
        busy.cluster.until_states("e", &["inSync"; 3]).await;
        busy.more_writes(100).await;
        load.finish().await;
        busy.cluster.assert_equal("e");
        busy.stamps.check_acknowledged(&volume).await;
        let copied = busy.metric("rebuildBytesCopied") - copied_before;
        assert!(
            (changed..=2 * LIVELY).contains(&copied),
            "{copied} bytes were copied; {changed} changed, and {QUIET} did not"
        );
        assert_eq!((busy.metric("errors"), busy.metric("replicaFailures")), (0, 1));
        engine.stop().await;
    });
}

/// The next engine was not there when it left, and knows what changed from the marks on disk.
#[test]
fn a_replica_that_was_away_longer_than_its_engine_gets_only_what_changed() {
    on_one_thread(async {
        let (mut busy, engine, volume) = Busy::new(9).await;
        let load = busy.stamps.load(&volume);
        busy.more_writes(100).await;
        busy.cluster.kill_replica(2);
        busy.cluster.until_states("e", &["inSync", "inSync", "away"]).await;
        let since = busy.stamps.versions();
        busy.more_writes(200).await;
        engine.kill();
        load.torn_away().await;
        let engine = busy.cluster.engine("e", &["--rebuild-rate", "256KiB"]);
        let volume = busy.cluster.client("e").await;
        busy.stamps.check_acknowledged(&volume).await;
        let load = busy.stamps.load(&volume);
        busy.more_writes(200).await;
        let changed = busy.changed(&since);
        busy.cluster.start_replica(2);
        let rebuild = busy.rebuild().await;
        assert_eq!(rebuild["kind"], "delta", "{rebuild}");
        busy.cluster.ctl("e", &["rebuild-rate", "0"]);
        busy.cluster.until_states("e", &["inSync"; 3]).await;
        load.finish().await;
        busy.cluster.assert_equal("e");
        busy.stamps.check_acknowledged(&volume).await;
        let copied = busy.metric("rebuildBytesCopied");
        assert!(
            (changed..QUIET / 4).contains(&copied),
            "{copied} bytes were copied; {changed} changed, and {QUIET} did not"
        );
        engine.stop().await;
    });
}

/// What it would serve is old, and whoever knows better is not there.
#[test]
fn a_replica_that_was_left_behind_is_not_served_from_when_it_is_alone() {
    on_one_thread(async {
        let mut cluster = Cluster::new(64 * MIB);
        let engine = cluster.engine("e", &[]);
        let volume = cluster.client("e").await;
        let stamps = Stamps::new(256, 10);
        stamps.fill(&volume).await;
        cluster.kill_replica(0);
        stamps.fill(&volume).await;
        engine.kill();
        cluster.kill_replica(1);
        cluster.kill_replica(2);

        cluster.start_replica(0);
        let refused = |cluster: &Cluster, silent: &[usize]| {
            let output = cluster.engine_command("e", &["--start-timeout", "2"]).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{}", said(&output));
            let words = silent.iter().map(|number| cluster.addresses[*number].as_str());
            for word in words.chain(["may hold newer data", "--assume-lost"]) {
                assert!(said(&output).contains(word), "{word} is missing in {}", said(&output));
            }
        };
        refused(&cluster, &[1, 2]);
        cluster.start_replica(1);
        refused(&cluster, &[2]);
        cluster.start_replica(2);
        let engine = cluster.engine("e", &[]);
        let volume = cluster.client("e").await;
        stamps.check_acknowledged(&volume).await;
        cluster.until_states("e", &["inSync"; 3]).await;
        stamps.check_acknowledged(&volume).await;
        cluster.assert_equal("e");
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

/// It had lost its replicas when the newer one opened them, and finds them again.
#[test]
fn an_older_engine_does_not_take_its_replicas_back() {
    on_one_thread(async {
        let mut cluster = Cluster::new(64 * MIB);
        let mut older = cluster.engine("older", &[]);
        let volume = cluster.client("older").await;
        let stamps = Stamps::new(512, 13);
        let load = stamps.stubborn_load(&volume);
        pause().await;
        (0..3).for_each(|number| cluster.kill_replica(number));
        cluster.until_states("older", &["away"; 3]).await;
        older.signal(Signal::STOP);
        (0..3).for_each(|number| cluster.start_replica(number));
        let newer = cluster.engine("newer", &[]);
        let current = cluster.client("newer").await;
        stamps.check_acknowledged(&current).await;
        stamps.fill(&current).await;
        older.signal(Signal::CONT);
        assert_eq!(older.ended().await.code(), Some(8), "fenced has an exit code of its own");
        load.end().await;
        cluster.until_states("newer", &["inSync"; 3]).await;
        stamps.check_acknowledged(&current).await;
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
