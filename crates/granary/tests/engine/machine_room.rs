//! One thing at a time that happens in a machine room: a disk is full, a cable is pulled.

use std::time::{Duration, Instant};

use granary_frontend::Volume;
use rustix::process::Signal;

use crate::cluster::{Cluster, HANGS, MIB, on_one_thread};
use crate::lab::Lab;
use crate::stamps::Stamps;

#[test]
fn a_full_disk_is_left_behind_and_taken_back_when_there_is_room() {
    if !Lab::is_possible("a volume on disks that are full") {
        return;
    }
    on_one_thread(async {
        let cluster = Cluster::in_lab(64 * MIB);
        let engine = cluster.engine("e", &[]);
        let volume = cluster.client("e").await;
        let stamps = Stamps::new(512, 11);
        stamps.fill(&volume).await;
        cluster.ctl("e", &["snapshot", "create", "before"]);

        cluster.lab().fill_disk(1);
        let load = stamps.load(&volume);
        cluster.until_states("e", &["inSync", "away", "inSync"]).await;
        let replicas = cluster.ctl("e", &["replica", "list"]);
        let reason = replicas["replicas"][1]["reason"].as_str().unwrap();
        assert!(["full", "free", "No space"].iter().any(|word| reason.contains(word)), "{reason}");
        load.finish().await;
        stamps.check_acknowledged(&volume).await;
        cluster.lab().free_disk(1);
        cluster.until_states("e", &["inSync"; 3]).await;
        stamps.check_acknowledged(&volume).await;
        cluster.assert_equal("e");
        engine.stop().await;
    });
}

#[test]
#[ignore = "of disks that fill up one after the other none has room to record who fell behind: I/O errors, at times"]
fn when_all_disks_are_full_guests_are_told_so_and_nobody_is_left_behind() {
    if !Lab::is_possible("a volume on disks that are all full") {
        return;
    }
    on_one_thread(async {
        let cluster = Cluster::in_lab(64 * MIB);
        let engine = cluster.engine("e", &[]);
        let volume = cluster.client("e").await;
        let stamps = Stamps::new(512, 11);
        stamps.fill(&volume).await;
        (0..3).for_each(|number| cluster.lab().fill_disk(number));
        let mut at = 32 * MIB;
        let refused = loop {
            match volume.write(at, vec![1; 1 << 16].into(), false).await {
                Ok(()) => at += 1 << 16,
                Err(error) => break error,
            }
            assert!(at < 64 * MIB, "no disk is full");
        };
        assert_eq!(refused, granary_frontend::VolumeError::NoSpace);
        stamps.check_acknowledged(&volume).await;
        (0..3).for_each(|number| cluster.lab().free_disk(number));
        volume.write(at, vec![2; 1 << 16].into(), true).await.unwrap();
        assert_eq!(volume.read(at, 1 << 16).await.unwrap(), vec![2; 1 << 16]);
        cluster.until_states("e", &["inSync"; 3]).await;
        cluster.assert_equal("e");
        engine.stop().await;
    });
}

/// It tried to record who is in sync more often than the newer one ever had to.
#[test]
fn an_older_engine_that_could_not_record_anything_does_not_take_its_replicas_back() {
    if !Lab::is_possible("an engine on full disks that is replaced") {
        return;
    }
    on_one_thread(async {
        let mut cluster = Cluster::in_lab(64 * MIB);
        let mut older = cluster.engine("older", &["--stall-timeout", "1"]);
        let volume = cluster.client("older").await;
        let stamps = Stamps::new(512, 14);
        stamps.fill(&volume).await;
        cluster.ctl("older", &["snapshot", "create", "before"]);
        (0..3).for_each(|number| cluster.lab().fill_disk(number));
        let load = stamps.stubborn_load(&volume);
        tokio::time::sleep(Duration::from_secs(5)).await;
        older.signal(Signal::STOP);
        for number in 0..3 {
            cluster.lab().free_disk(number);
            cluster.kill_replica(number);
            cluster.start_replica(number);
        }
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
fn a_replica_whose_cable_is_pulled_is_left_behind_and_taken_back() {
    if !Lab::is_possible("a replica that is cut off") {
        return;
    }
    on_one_thread(async {
        let cluster = Cluster::in_lab(64 * MIB);
        let engine = cluster.engine("e", &[]);
        let volume = cluster.client("e").await;
        let stamps = Stamps::new(512, 12);
        let load = stamps.load(&volume);
        cluster.lab().pull_cable(2);
        cluster.until_states("e", &["inSync", "inSync", "away"]).await;
        let before = stamps.writes();
        let began = Instant::now();
        while stamps.writes() < before + 100 {
            assert!(began.elapsed() < HANGS, "nothing is written without it");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        cluster.lab().plug_cable(2);
        cluster.until_states("e", &["inSync"; 3]).await;
        load.finish().await;
        stamps.check_acknowledged(&volume).await;
        cluster.assert_equal("e");
        engine.stop().await;
    });
}
