//! Made, attached, hurt, mended, grown, moved, detached, deleted.

use std::collections::BTreeSet;
use std::io::{Read, Write};

use granary_api::longhorn::{Engine, Volume};
use granary_instance::wire::process::{ProcessDeleteRequest, ProcessListRequest};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

use crate::house::{House, NODES, node_of, until};

const MIB: u64 = 1 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_is_made_attached_mended_moved_and_deleted() {
    let house = House::new().await;
    let size = 64 * MIB;
    house
        .create_volume("v", json!({ "size": size.to_string(), "numberOfReplicas": 3, "frontend": "" }))
        .await;
    house.until_volume("v", "detached", "unknown").await;
    let places: BTreeSet<String> = house.replicas().await.iter().map(node_of).collect();
    assert_eq!(places, NODES.map(str::to_owned).into(), "each replica has a node of its own");

    house.change_volume("v", json!({ "nodeID": "n1" })).await;
    let volume = house.until_volume("v", "attached", "healthy").await;
    assert_eq!(volume.status.unwrap().current_node_id.as_deref(), Some("n1"));
    assert_eq!(engine(&house).await.status.unwrap().current_size.unwrap().bytes(), size);

    // A replica's process goes without anybody having asked for it.
    let replicas = house.replicas().await;
    let victim = replicas.iter().find(|replica| node_of(replica) == "n3").unwrap().name_any();
    let request = ProcessDeleteRequest { name: victim.clone(), uuid: String::new() };
    house.connection(2).processes().unwrap().process_delete(request).await.unwrap();
    house.until_volume("v", "attached", "degraded").await;
    house.until_volume("v", "attached", "healthy").await;
    let names: BTreeSet<String> = house.replicas().await.iter().map(ResourceExt::name_any).collect();
    assert!(names.contains(&victim) && names.len() == 3, "the same replica was filled again: {names:?}");

    house.change_volume("v", json!({ "size": (2 * size).to_string() })).await;
    until("the volume to have grown", || async {
        let grown = engine(&house).await.status?.current_size?;
        (grown.bytes() == 2 * size).then_some(())
    })
    .await;

    house.change_volume("v", json!({ "nodeID": "n2" })).await;
    until("the engine to move", || async {
        let engine = engine(&house).await;
        let is_there = engine.spec.instance.node_id.as_deref() == Some("n2");
        (is_there && processes(&house, 1).await.contains(&engine.name_any())).then_some(())
    })
    .await;
    house.until_volume("v", "attached", "healthy").await;
    assert!(!processes(&house, 0).await.contains(&engine(&house).await.name_any()), "only one engine runs");

    house.change_volume("v", json!({ "nodeID": "" })).await;
    house.until_volume("v", "detached", "unknown").await;
    for number in 0..NODES.len() {
        assert_eq!(processes(&house, number).await, Vec::<String>::new());
    }
    house.api::<Volume>().delete("v", &DeleteParams::default()).await.unwrap();
    until("everything to be gone", || async {
        let volume = house.api::<Volume>().get_opt("v").await.unwrap();
        (volume.is_none() && house.replicas().await.is_empty()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_without_room_says_why() {
    let house = House::new().await;
    let size: u64 = 1 << 50;
    house
        .create_volume("v", json!({ "size": size.to_string(), "numberOfReplicas": 1, "frontend": "" }))
        .await;
    let message = until("the reason", || async {
        let conditions = house.api::<Volume>().get("v").await.unwrap().status?.conditions?;
        let scheduled = conditions.into_iter().find(|c| c.type_.as_deref() == Some("Scheduled"))?;
        scheduled.message.filter(|message| !message.is_empty())
    })
    .await;
    assert!(message.contains("disk main of node n1 has 100.0 GiB left to promise"), "{message}");
    house.api::<Volume>().delete("v", &DeleteParams::default()).await.unwrap();
    until("the volume to go", || async {
        house.api::<Volume>().get_opt("v").await.unwrap().is_none().then_some(())
    })
    .await;
}

/// A volume that is in use is moved, loses a node, and gets it back: what was written stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_stays() {
    let mut house = House::new().await;
    // Devices are named by volume, for the whole machine.
    let name = format!("control-{}", std::process::id());
    let spec = json!({ "size": (64 * MIB).to_string(), "numberOfReplicas": 3, "frontend": "blockdev" });
    house.create_volume(&name, spec).await;
    house.change_volume(&name, json!({ "nodeID": "n2" })).await;
    house.until_volume(&name, "attached", "healthy").await;
    let device = format!("/dev/longhorn/{name}");
    assert_eq!(engine(&house).await.status.unwrap().endpoint.as_deref(), Some(device.as_str()));
    write(&device, 7).await;

    house.change_volume(&name, json!({ "nodeID": "n1" })).await;
    until("the engine to move", || async {
        let engine = engine(&house).await;
        (engine.spec.instance.node_id.as_deref() == Some("n1")).then_some(())
    })
    .await;
    house.until_volume(&name, "attached", "healthy").await;
    assert_eq!(read(&device).await, vec![7; MIB as usize]);

    house.kill_node(2);
    house.until_volume(&name, "attached", "degraded").await;
    write(&device, 8).await;
    house.revive_node(2);
    house.until_volume(&name, "attached", "healthy").await;
    assert_eq!(read(&device).await, vec![8; MIB as usize]);
    assert_eq!(house.replicas().await.len(), 3);

    house.change_volume(&name, json!({ "nodeID": "" })).await;
    house.until_volume(&name, "detached", "unknown").await;
}

/// An engine's node is lost: the next engine starts with the two replicas that are left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_starts_elsewhere_when_its_node_is_dead() {
    let mut house = House::new().await;
    house
        .create_volume("v", json!({ "size": (64 * MIB).to_string(), "numberOfReplicas": 3, "frontend": "" }))
        .await;
    house.change_volume("v", json!({ "nodeID": "n1" })).await;
    house.until_volume("v", "attached", "healthy").await;
    house.kill_node(0);
    house.until_volume("v", "attached", "unknown").await;
    house.change_volume("v", json!({ "nodeID": "n2" })).await;
    let volume = house.until_volume("v", "attached", "degraded").await;
    assert_eq!(volume.status.unwrap().current_node_id.as_deref(), Some("n2"));
    house.revive_node(0);
    house.until_volume("v", "attached", "healthy").await;
}

async fn write(device: &str, byte: u8) {
    let device = device.to_owned();
    let writing = move || {
        let mut file = std::fs::OpenOptions::new().write(true).open(device).unwrap();
        file.write_all(&vec![byte; MIB as usize]).unwrap();
        file.sync_all().unwrap();
    };
    tokio::task::spawn_blocking(writing).await.unwrap();
}

async fn read(device: &str) -> Vec<u8> {
    let device = device.to_owned();
    let reading = move || {
        let mut content = vec![0; MIB as usize];
        std::fs::File::open(device).unwrap().read_exact(&mut content).unwrap();
        content
    };
    tokio::task::spawn_blocking(reading).await.unwrap()
}

async fn engine(house: &House) -> Engine {
    house.api::<Engine>().list(&ListParams::default()).await.unwrap().items.remove(0)
}

async fn processes(house: &House, number: usize) -> Vec<String> {
    let listed = house.connection(number).processes().unwrap().process_list(ProcessListRequest {}).await;
    listed.unwrap().into_inner().processes.into_keys().collect()
}
