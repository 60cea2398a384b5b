//! What a manager does with a running volume, by every way there is to its engine: they must not differ.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use granary_frontend::Volume;
use granary_instance::client::{ClientError, EngineClient, ReplicaMode, Versions, engine_client};
use granary_instance::wire::imrpc::{EngineSnapshotHashRequest, EngineSnapshotHashStatusRequest};
use granary_instance::wire::imrpc::{EngineVolumeSnapshotMaxCountSetRequest, EngineVolumeSnapshotRequest};
use granary_instance::wire::ptypes;
use tonic::Code;

use crate::cluster::{MIB, Manager, meant_for, on_one_thread};

#[test]
fn through_the_proxy() {
    on_one_thread(async {
        let manager = Manager::new();
        let versions = manager.connection().versions().await.unwrap();
        assert!(versions.proxy > 0);
        everything(&manager, versions).await;
    });
}

/// As with an instance manager of before there was a proxy.
#[test]
fn by_running_a_program() {
    on_one_thread(async {
        let manager = Manager::new();
        let versions = manager.connection().versions().await.unwrap();
        everything(&manager, Versions { proxy: 0, proxy_min: 0, ..versions }).await;
    });
}

async fn everything(manager: &Manager, versions: Versions) {
    let replicas = manager.replicas("v", 2).await;
    let engine = manager.engine("v", &replicas, &[]).await;
    let client = engine_client(&manager.connection(), versions, &manager.engine_at("v", &engine));
    let client = client.as_ref();
    assert_eq!(client.version().await.unwrap(), env!("CARGO_PKG_VERSION"));
    let volume = client.volume().await.unwrap();
    assert_eq!(
        (volume.name.as_str(), volume.size, volume.replicas, volume.endpoint.as_str()),
        ("v", 64 * MIB, 2, "")
    );
    turned_back(manager, client).await;
    thinned_out(client).await;
    grown(client).await;
    rebuilt(manager, client, &replicas).await;
    manager.delete("v-e", "").await.unwrap();
    manager.until_gone("v-e").await;
    assert!(matches!(client.volume().await, Err(ClientError::Unavailable(_))));
}

async fn turned_back(manager: &Manager, client: &dyn EngineClient) {
    let write = async |byte: u8| {
        client.start_frontend(&manager.nbd("v")).await.unwrap();
        let volume = manager.client("v").await;
        volume.write(0, Bytes::from(vec![byte; 8192]), true).await.unwrap();
    };
    write(1).await;
    assert!(client.volume().await.unwrap().endpoint.contains("v.nbd"));
    let other = client.start_frontend(&manager.nbd("other")).await;
    assert!(matches!(other, Err(ClientError::Refused(_))), "{other:?}");
    let labels = BTreeMap::from([("why".to_owned(), "test".to_owned())]);
    assert_eq!(client.create_snapshot("one", &labels).await.unwrap(), "one");
    write(2).await;
    let chosen = client.create_snapshot("", &BTreeMap::new()).await.unwrap();
    assert!(!chosen.is_empty());
    let again = client.create_snapshot("one", &labels).await;
    assert!(matches!(again, Err(ClientError::Exists(_))), "{again:?}");

    let snapshots = client.snapshots().await.unwrap();
    let names: Vec<_> =
        snapshots.iter().map(|snapshot| (snapshot.name.as_str(), snapshot.parent.as_str())).collect();
    assert_eq!(names, [("one", ""), (chosen.as_str(), "one")]);
    assert_eq!(snapshots[0].labels, labels);
    assert!(snapshots[0].user_created && !snapshots[0].removed && snapshots[0].size >= 8192);

    let in_use = client.revert("one").await;
    assert!(matches!(&in_use, Err(ClientError::Refused(why)) if why.contains("frontend")), "{in_use:?}");
    client.stop_frontend().await.unwrap();
    assert_eq!(client.volume().await.unwrap().endpoint, "");
    let none = client.revert("none").await;
    assert!(matches!(none, Err(ClientError::NotFound(_))), "{none:?}");
    client.revert("one").await.unwrap();
    client.start_frontend(&manager.nbd("v")).await.unwrap();
    let volume = manager.client("v").await;
    assert_eq!(volume.read(0, 8192).await.unwrap(), vec![1; 8192]);
    drop(volume);
    let none = client.remove_snapshot("none").await;
    assert!(matches!(none, Err(ClientError::NotFound(_))), "{none:?}");
    client.remove_snapshot(&chosen).await.unwrap();
}

async fn thinned_out(client: &dyn EngineClient) {
    client.purge().await.unwrap();
    while client.is_purging().await.unwrap() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let names: Vec<_> = client.snapshots().await.unwrap().into_iter().map(|snapshot| snapshot.name).collect();
    assert_eq!(names, ["one"]);
}

async fn grown(client: &dyn EngineClient) {
    client.expand(96 * MIB).await.unwrap();
    assert_eq!(client.volume().await.unwrap().size, 96 * MIB);
    let shrunk = client.expand(MIB).await;
    assert!(matches!(shrunk, Err(ClientError::Refused(_))), "{shrunk:?}");
}

async fn rebuilt(manager: &Manager, client: &dyn EngineClient, replicas: &[String]) {
    let modes =
        async || client.replicas().await.unwrap().into_iter().map(|replica| replica.mode).collect::<Vec<_>>();
    assert_eq!(modes().await, [ReplicaMode::ReadWrite; 2]);
    client.remove_replica(&replicas[1]).await.unwrap();
    let again = client.remove_replica(&replicas[1]).await;
    assert!(matches!(again, Err(ClientError::NotFound(_))), "{again:?}");
    client.limit_rebuilds(1000).await.unwrap();
    client.add_replica(&replicas[1]).await.unwrap();
    let third = manager.replica("v", 2).await;
    client.add_replica(&third).await.unwrap();
    assert_eq!(modes().await, [ReplicaMode::ReadWrite; 3]);
    assert_eq!(client.rebuilds().await.unwrap(), []);
}

/// What only the proxy offers.
#[test]
fn checksums_limits_and_rates() {
    on_one_thread(async {
        let manager = Manager::new();
        let replicas = manager.replicas("v", 3).await;
        let engine = manager.engine("v", &replicas, &["--frontend", &manager.nbd("v")]).await;
        let who = meant_for(&manager.engine_at("v", &engine));
        let mut proxy = manager.connection().proxy().unwrap();
        let volume = manager.client("v").await;
        volume.write(0, Bytes::from(vec![7; 1 << 20]), true).await.unwrap();
        let snapshot = |name: &str| EngineVolumeSnapshotRequest {
            proxy_engine_request: Some(who.clone()),
            snapshot_volume: Some(ptypes::VolumeSnapshotRequest { name: name.into(), ..Default::default() }),
        };
        proxy.volume_snapshot(snapshot("one")).await.unwrap();

        let ask = EngineSnapshotHashStatusRequest {
            proxy_engine_request: Some(who.clone()),
            snapshot_name: "one".into(),
        };
        assert_eq!(proxy.snapshot_hash_status(ask.clone()).await.unwrap_err().code(), Code::NotFound);
        let begin = EngineSnapshotHashRequest {
            proxy_engine_request: Some(who.clone()),
            snapshot_name: "one".into(),
            rehash: false,
        };
        proxy.snapshot_hash(begin).await.unwrap();
        let done = loop {
            let status = proxy.snapshot_hash_status(ask.clone()).await.unwrap().into_inner().status;
            if status.values().all(|status| status.state == "complete") {
                break status;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let addresses: Vec<_> = done.keys().cloned().collect();
        let mut expected: Vec<_> = replicas.iter().map(|address| format!("tcp://{address}")).collect();
        expected.sort();
        assert_eq!(addresses, expected);
        assert!(done.values().all(|status| !status.checksum.is_empty() && !status.silently_corrupted));

        let limit = EngineVolumeSnapshotMaxCountSetRequest {
            proxy_engine_request: Some(who.clone()),
            count: Some(ptypes::VolumeSnapshotMaxCountSetRequest { count: 2 }),
        };
        proxy.volume_snapshot_max_count_set(limit).await.unwrap();
        proxy.volume_snapshot(snapshot("two")).await.unwrap();
        let refused = proxy.volume_snapshot(snapshot("three")).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        assert_eq!(
            proxy.volume_get(who.clone()).await.unwrap().into_inner().volume.unwrap().snapshot_max_count,
            2
        );

        proxy.metrics_get(who.clone()).await.unwrap();
        volume.write(0, Bytes::from(vec![8; 1 << 20]), true).await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        let metrics = proxy.metrics_get(who).await.unwrap().into_inner().metrics.unwrap();
        assert!(
            metrics.write_throughput > 0 && metrics.write_iops > 0 && metrics.write_latency > 0,
            "{metrics:?}"
        );
        assert_eq!(metrics.read_iops, 0);
    });
}
