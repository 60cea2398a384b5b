//! An instance manager is killed. Its volumes do not notice, and the next one goes on with them.

use std::time::Duration;

use granary_instance::client::engine_client;
use rustix::process::{Pid, Signal, kill_process};

use crate::cluster::{Manager, on_one_thread};
use crate::stamps::Stamps;

#[test]
fn volumes_outlive_their_instance_manager() {
    on_one_thread(async {
        let mut manager = Manager::new();
        let replicas = manager.replicas("v", 2).await;
        let engine = manager.engine("v", &replicas, &["--frontend", &manager.nbd("v")]).await;
        let volume = manager.client("v").await;
        let stamps = Stamps::new(256, 11);
        let load = stamps.load(&volume);
        for round in 1..=2 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            manager.kill();
            let before = stamps.writes();
            while stamps.writes() < before + 50 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            manager = tokio::task::spawn_blocking(move || {
                manager.restart();
                manager
            })
            .await
            .unwrap();
            assert!(manager.line.contains("processes=3"), "round {round}: {}", manager.line);
            let found = manager.until("v-e", "running").await;
            assert_eq!(found, engine, "it is the same process, with the same name, ports and uuid");
        }
        let connection = manager.connection();
        connection.check().await.unwrap();
        let versions = connection.versions().await.unwrap();
        let client = engine_client(&connection, versions, &manager.engine_at("v", &engine));
        assert_eq!(client.volume().await.unwrap().replicas, 2);
        load.finish().await;
        stamps.check_acknowledged(&volume).await;
        drop(volume);
        manager.delete("v-e", &engine.status.unwrap().uuid).await.unwrap();
        manager.until_gone("v-e").await;
        assert!(!manager.path("v.nbd").exists(), "one that was adopted ends in order, too");
        let next = manager.replica("w", 0).await;
        assert!(!replicas.contains(&next), "the ports of adopted processes are taken");
    });
}

#[test]
fn what_died_meanwhile_is_told() {
    on_one_thread(async {
        let mut manager = Manager::new();
        manager.replicas("v", 2).await;
        let run = manager.get("v-r0").await.unwrap().status.unwrap().uuid;
        let pid = Pid::from_raw(manager.process_of(&run).0 as i32).unwrap();
        manager.kill();
        kill_process(pid, Signal::KILL).unwrap();
        while std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))
            .is_ok_and(|stat| !stat.contains(") Z "))
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        manager.restart();
        manager.connection().check().await.unwrap();
        let status = manager.get("v-r0").await.unwrap().status.unwrap();
        assert_eq!(status.state, "error");
        assert!(status.error_msg.contains("not running"), "{}", status.error_msg);
        assert_eq!(manager.get("v-r1").await.unwrap().status.unwrap().state, "running");
        manager.delete("v-r0", "").await.unwrap();
        manager.until_gone("v-r0").await;
        manager.replica("v", 0).await;
    });
}

/// Its record says that it is to be started; whether it was, nobody wrote down.
#[test]
fn a_process_without_a_number_is_found() {
    on_one_thread(async {
        let mut manager = Manager::new();
        manager.replica("v", 0).await;
        let before = manager.get("v-r0").await.unwrap();
        let record = manager.path("state").join(format!("{}.json", before.status.as_ref().unwrap().uuid));
        manager.kill();
        let mut text: serde_json::Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
        let process = text["process"].take();
        text["ready"] = false.into();
        std::fs::write(&record, text.to_string()).unwrap();
        manager.restart();
        manager.connection().check().await.unwrap();
        assert_eq!(manager.until("v-r0", "running").await, before);
        let text: serde_json::Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
        assert_eq!(text["process"], process);
    });
}
