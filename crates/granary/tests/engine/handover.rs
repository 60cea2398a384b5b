//! A running engine is replaced, and its users only wait a moment.

use std::time::Duration;

use granary_enginectl::v1::HandoverRequest;

use crate::cluster::{Cluster, MIB, exists, on_one_thread};
use crate::stamps::Stamps;

#[test]
fn an_engine_is_replaced_under_load_without_an_error() {
    on_one_thread(async {
        let cluster = Cluster::new(64 * MIB);
        let mut engine = cluster.engine("e", &[]);
        let volume = cluster.client("e").await;
        let stamps = Stamps::new(512, 7);
        let load = stamps.load(&volume);
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let command = cluster.engine_command("e", &["--takeover", &cluster.url("e")]);
            let before = stamps.writes();
            // The load lives on this thread, and must go on while the next engine starts.
            let next = tokio::task::spawn_blocking(|| crate::cluster::Process::start(command)).await.unwrap();
            assert_eq!(engine.ended().await.code(), Some(0));
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert!(stamps.writes() > before, "writes go on");
            engine = next;
        }
        load.finish().await;
        stamps.check_acknowledged(&volume).await;
        cluster.assert_equal("e");
        assert_eq!(cluster.ctl("e", &["metrics"])["errors"], 0);
        let late = cluster.client("e").await;
        stamps.check_acknowledged(&late).await;
        engine.stop().await;
        assert!(!exists(&cluster.path("e.nbd")), "the last one cleans up");
    });
}

/// A next engine that is not there when it is to take over.
#[test]
fn an_engine_whose_successor_fails_goes_on() {
    on_one_thread(async {
        let cluster = Cluster::new(64 * MIB);
        let engine = cluster.engine("e", &[]);
        let volume = cluster.client("e").await;
        let stamps = Stamps::new(512, 8);
        let load = stamps.load(&volume);
        let listener = tokio::net::UnixListener::bind(cluster.path("successor")).unwrap();
        let mut control = granary_enginectl::connect(&cluster.url("e").parse().unwrap()).await.unwrap();
        let request = HandoverRequest {
            volume: "vol".into(),
            frontends: vec![cluster.nbd("e").parse::<granary_frontend::FrontendSpec>().unwrap().to_string()],
            socket: "successor".into(),
            control: cluster.url("e"),
            size: 0,
        };
        control.handover(request).await.unwrap();
        drop(listener.accept().await.unwrap());
        let before = stamps.writes();
        while stamps.writes() < before + 100 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        load.finish().await;
        stamps.check_acknowledged(&volume).await;
        cluster.until_states("e", &["inSync"; 3]).await;
        cluster.assert_equal("e");
        engine.stop().await;
    });
}
