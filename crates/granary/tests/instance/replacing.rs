//! A running engine is replaced by one of another binary, and its users only wait a moment.

use std::os::unix::fs::symlink;
use std::time::Duration;

use granary_instance::client::engine_client;
use granary_instance::wire::process::{ProcessReplaceRequest, ProcessResponse, ProcessSpec};
use tonic::{Code, Status};

use crate::cluster::{GRANARY, Manager, engine_spec, on_one_thread};
use crate::stamps::Stamps;

async fn replace(manager: &Manager, spec: ProcessSpec, signal: &str) -> Result<ProcessResponse, Status> {
    let request = ProcessReplaceRequest { spec: Some(spec), terminate_signal: signal.into() };
    Ok(manager.connection().processes().unwrap().process_replace(request).await?.into_inner())
}

#[test]
fn an_engine_is_replaced_under_load() {
    on_one_thread(async {
        let manager = Manager::new();
        let replicas = manager.replicas("v", 2).await;
        let mut engine = manager.engine("v", &replicas, &[]).await;
        let versions = manager.connection().versions().await.unwrap();
        let client = engine_client(&manager.connection(), versions, &manager.engine_at("v", &engine));
        // Not in any spec: the next engine learns it from the one before.
        client.start_frontend(&manager.nbd("v")).await.unwrap();
        let volume = manager.client("v").await;
        let stamps = Stamps::new(256, 13);
        let load = stamps.load(&volume);
        let mut processes = manager.connection().processes().unwrap();
        let mut changes = processes.process_watch(()).await.unwrap().into_inner();
        for round in 0..3 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let binary = manager.path(&format!("granary-{round}"));
            symlink(GRANARY, &binary).unwrap();
            let wanted =
                ProcessSpec { binary: binary.display().to_string(), ..engine_spec("v", &replicas, &[]) };
            let before = stamps.writes();
            let next = replace(&manager, wanted.clone(), "SIGHUP").await.unwrap();
            assert_eq!(next.spec.as_ref(), Some(&wanted));
            assert_eq!(next.status.as_ref().unwrap().state, "running");
            assert_ne!(next.status.as_ref().unwrap().uuid, engine.status.as_ref().unwrap().uuid);
            while stamps.writes() < before + 50 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let again = replace(&manager, wanted, "SIGHUP").await.unwrap();
            assert_eq!(again, next, "the same binary again changes nothing");
            engine = next;
            let told = changes.message().await.unwrap().unwrap().status.unwrap();
            assert_eq!(told.state, "running", "nobody is told that the engine was gone");
        }
        load.finish().await;
        stamps.check_acknowledged(&volume).await;
        let connection = manager.connection();
        let versions = connection.versions().await.unwrap();
        let client = engine_client(&connection, versions, &manager.engine_at("v", &engine));
        assert_eq!(client.volume().await.unwrap().size, 64 << 20, "the proxy follows");
    });
}

#[test]
fn a_replacement_that_fails_leaves_the_engine_alone() {
    on_one_thread(async {
        let manager = Manager::new();
        let replicas = manager.replicas("v", 1).await;
        let frontend = manager.nbd("v");
        let flags = ["--frontend", frontend.as_str()];
        let engine = manager.engine("v", &replicas, &flags).await;
        let volume = manager.client("v").await;
        let stamps = Stamps::new(64, 17);
        let load = stamps.load(&volume);
        let binary = manager.path("granary-next");
        symlink(GRANARY, &binary).unwrap();
        let binary = binary.display().to_string();
        let wrong_size = [flags.as_slice(), &["--size", "1GiB"]].concat();
        for (spec, signal, code) in [
            (
                ProcessSpec { binary: binary.clone(), ..engine_spec("v", &replicas, &flags) },
                "SIGTERM",
                Code::InvalidArgument,
            ),
            (
                ProcessSpec { binary: binary.clone(), ..engine_spec("v", &replicas, &wrong_size) },
                "SIGHUP",
                Code::Internal,
            ),
            (
                ProcessSpec { name: "w-e".into(), ..engine_spec("v", &replicas, &flags) },
                "SIGHUP",
                Code::NotFound,
            ),
            (
                ProcessSpec {
                    name: "v-e".into(),
                    binary: binary.clone(),
                    ..engine_spec("w", &replicas, &flags)
                },
                "SIGHUP",
                Code::InvalidArgument,
            ),
            (
                ProcessSpec { name: "v-r0".into(), binary, ..engine_spec("v", &replicas, &flags) },
                "SIGHUP",
                Code::FailedPrecondition,
            ),
        ] {
            let refused = replace(&manager, spec, signal).await.unwrap_err();
            assert_eq!(refused.code(), code, "{refused}");
        }
        assert_eq!(manager.get("v-e").await.unwrap(), engine);
        let before = stamps.writes();
        while stamps.writes() < before + 50 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        load.finish().await;
        stamps.check_acknowledged(&volume).await;
    });
}

/// At whatever moment the manager dies, there is one engine afterwards, and the volume's users go on.
#[test]
fn a_manager_dies_while_it_replaces_an_engine() {
    on_one_thread(async {
        let mut manager = Manager::new();
        let replicas = manager.replicas("v", 1).await;
        let frontend = manager.nbd("v");
        let flags = ["--frontend", frontend.as_str()];
        manager.engine("v", &replicas, &flags).await;
        let volume = manager.client("v").await;
        let stamps = Stamps::new(64, 19);
        let load = stamps.load(&volume);
        for round in 0..8u64 {
            let binary = manager.path(&format!("granary-{round}"));
            symlink(GRANARY, &binary).unwrap();
            let binary = binary.display().to_string();
            let wanted = ProcessSpec { binary, ..engine_spec("v", &replicas, &flags) };
            // In the middle of it, or as soon as it is done, when the old engine may not have ended yet.
            let life =
                if round % 2 == 0 { Duration::from_millis(round * 30) } else { Duration::from_secs(60) };
            tokio::time::timeout(life, replace(&manager, wanted, "SIGHUP")).await.ok();
            manager.kill();
            manager = tokio::task::spawn_blocking(move || {
                manager.restart();
                manager
            })
            .await
            .unwrap();
            manager.connection().check().await.unwrap();
            assert_eq!(manager.names().await, ["v-e", "v-r0"], "round {round}");
            let engine = manager.until("v-e", "running").await;
            let before = stamps.writes();
            while stamps.writes() < before + 20 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let versions = manager.connection().versions().await.unwrap();
            let client = engine_client(&manager.connection(), versions, &manager.engine_at("v", &engine));
            assert!(client.volume().await.unwrap().endpoint.contains("v.nbd"), "round {round}");
        }
        load.finish().await;
        stamps.check_acknowledged(&volume).await;
    });
}
