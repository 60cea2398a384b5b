//! Requests that are wrong, or meant for somebody else: each is told what is wrong, and nothing changes.

use granary_instance::client::{ClientError, engine_client};
use granary_instance::wire::imrpc as im;
use granary_instance::wire::process::ProcessSpec;
use granary_instance::wire::ptypes;
use tonic::{Code, Request};

use crate::cluster::{Manager, meant_for, on_one_thread, spec};

#[test]
fn bad_input_starts_nothing() {
    on_one_thread(async {
        let manager = Manager::with_flags(&[]);
        let dir = manager.path("r").display().to_string();
        let good = || {
            spec(
                "r",
                &["replica", "--volume", "v", "--dir", &dir, "--size", "1MiB"],
                &["--listen,127.0.0.1:"],
            )
        };
        let wrong: [(&str, ProcessSpec, Code); 8] = [
            ("no name", ProcessSpec { name: String::new(), ..good() }, Code::InvalidArgument),
            ("a path as name", ProcessSpec { name: "../../etc/x".into(), ..good() }, Code::InvalidArgument),
            ("no binary", ProcessSpec { binary: String::new(), ..good() }, Code::InvalidArgument),
            ("any binary", ProcessSpec { binary: "/bin/sh".into(), ..good() }, Code::InvalidArgument),
            ("too few ports", ProcessSpec { port_count: 0, ..good() }, Code::InvalidArgument),
            ("less than no ports", ProcessSpec { port_count: -1, ..good() }, Code::InvalidArgument),
            (
                "more ports than there are",
                ProcessSpec { port_count: 60_000, ..good() },
                Code::ResourceExhausted,
            ),
            ("no key", good(), Code::FailedPrecondition),
        ];
        for (what, spec, code) in wrong {
            let refused = manager.create(spec).await.expect_err(what);
            assert_eq!(refused.code(), code, "{what}: {refused}");
        }
        assert!(manager.names().await.is_empty());
        assert!(!manager.path("r").exists() && !manager.path("keys").exists());
        for name in ["nobody", "../x", ""] {
            assert_eq!(manager.get(name).await.unwrap_err().code(), Code::NotFound);
        }
    });
}

#[test]
fn nobody_is_asked_what_was_meant_for_another() {
    on_one_thread(async {
        let manager = Manager::new();
        let replicas = manager.replicas("v", 1).await;
        let engine = manager.engine("v", &replicas, &[]).await;
        let at = manager.engine_at("v", &engine);
        let mut proxy = manager.connection().proxy().unwrap();
        proxy.ping(()).await.unwrap();
        let expand = |who: im::ProxyEngineRequest| im::EngineVolumeExpandRequest {
            proxy_engine_request: Some(who),
            expand: Some(ptypes::VolumeExpandRequest { size: 128 << 20 }),
        };
        let who = meant_for(&at);
        let elsewhere = format!("192.0.2.7:{}", at.address.rsplit_once(':').unwrap().1);
        let replica = replicas[0].clone();
        let wrong = [
            (
                "another volume",
                im::ProxyEngineRequest { volume_name: "w".into(), ..who.clone() },
                Code::FailedPrecondition,
            ),
            (
                "another engine",
                im::ProxyEngineRequest { engine_name: "w-e".into(), ..who.clone() },
                Code::FailedPrecondition,
            ),
            (
                "another machine",
                im::ProxyEngineRequest { address: elsewhere, ..who.clone() },
                Code::Unavailable,
            ),
            (
                "a free port",
                im::ProxyEngineRequest { address: "127.0.0.1:9".into(), ..who.clone() },
                Code::Unavailable,
            ),
            ("a replica", im::ProxyEngineRequest { address: replica, ..who.clone() }, Code::Unavailable),
            (
                "nonsense",
                im::ProxyEngineRequest { address: "../../x".into(), ..who.clone() },
                Code::InvalidArgument,
            ),
        ];
        for (what, who, code) in wrong {
            let address = who.address.clone();
            let refused = proxy.volume_expand(expand(who)).await.expect_err(what);
            assert_eq!(refused.code(), code, "{what}: {refused}");
            assert!(refused.message().contains(&address), "{what}: {refused}");
        }
        for (name, value) in [("volume-name", "w"), ("instance-name", "w-e")] {
            let mut request = Request::new(expand(who.clone()));
            request.metadata_mut().insert(name, value.parse().unwrap());
            let refused = proxy.volume_expand(request).await.unwrap_err();
            assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
        }
        for size in [0, -1, 1, 4096 + 1, i64::MAX, 1 << 20] {
            let expand = Some(ptypes::VolumeExpandRequest { size });
            let request = im::EngineVolumeExpandRequest { proxy_engine_request: Some(who.clone()), expand };
            let refused = proxy.volume_expand(request).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{size}: {refused}");
        }
        let name = |name: &str| im::EngineVolumeSnapshotRequest {
            proxy_engine_request: Some(who.clone()),
            snapshot_volume: Some(ptypes::VolumeSnapshotRequest { name: name.into(), ..Default::default() }),
        };
        for wrong in ["../x", "a/b", "volume-head", "a\nb"] {
            let refused = proxy.volume_snapshot(name(wrong)).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{wrong}: {refused}");
        }
        let backup =
            im::EngineSnapshotBackupRequest { proxy_engine_request: Some(who.clone()), ..Default::default() };
        assert_eq!(proxy.snapshot_backup(backup).await.unwrap_err().code(), Code::Unimplemented);
        let volume = proxy.volume_get(who.clone()).await.unwrap().into_inner().volume.unwrap();
        assert_eq!((volume.size, volume.frontend_state.as_str()), (64 << 20, "down"), "nothing has changed");
        assert_eq!(proxy.snapshot_list(who).await.unwrap().into_inner().disks.len(), 1);

        let right = engine_client(&manager.connection(), manager.connection().versions().await.unwrap(), &at);
        right.volume().await.unwrap();
        manager.delete("v-e", "").await.unwrap();
        manager.until_gone("v-e").await;
        let gone = right.volume().await.unwrap_err();
        assert!(matches!(&gone, ClientError::Unavailable(why) if why.contains(&at.address)), "{gone:?}");
    });
}
