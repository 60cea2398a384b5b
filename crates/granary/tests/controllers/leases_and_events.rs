//! Locks by Lease, and events by the recorder of client libraries.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Event as CoreEvent};
use k8s_openapi::api::events::v1::Event as EventsEvent;
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;

use super::config_map;
use super::support::{Granary, Place};

crate::everywhere!(of_many_contenders_one_holds_the_lease, a_recorder_publishes_and_counts);

/// Takes the lease when it is free; `false` when somebody else has it.
async fn take(client: &Client, who: &str) -> bool {
    let leases: Api<Lease> = Api::default_namespaced(client.clone());
    let spec = LeaseSpec {
        holder_identity: Some(who.into()),
        lease_duration_seconds: Some(15),
        ..LeaseSpec::default()
    };
    match leases.get_opt("lock").await.unwrap() {
        None => {
            let metadata = ObjectMeta { name: Some("lock".into()), ..ObjectMeta::default() };
            let made = leases.create(&PostParams::default(), &Lease { metadata, spec: Some(spec) }).await;
            made.map_or_else(|error| only_conflict(&error), |_| true)
        }
        Some(lease) if lease.spec.as_ref().is_some_and(|s| s.holder_identity.is_some()) => false,
        Some(mut lease) => {
            lease.spec = Some(spec);
            let replaced = leases.replace("lock", &PostParams::default(), &lease).await;
            replaced.map_or_else(|error| only_conflict(&error), |_| true)
        }
    }
}

/// A race may be lost; anything else is an error.
fn only_conflict(error: &kube::Error) -> bool {
    assert!(matches!(error, kube::Error::Api(status) if status.code == 409), "{error}");
    false
}

async fn release(client: &Client, who: &str) {
    let leases: Api<Lease> = Api::default_namespaced(client.clone());
    let test = json!([
        { "op": "test", "path": "/spec/holderIdentity", "value": who },
        { "op": "remove", "path": "/spec/holderIdentity" },
    ]);
    let patch = Patch::Json::<Lease>(serde_json::from_value(test).unwrap());
    leases.patch("lock", &PatchParams::default(), &patch).await.unwrap();
}

async fn of_many_contenders_one_holds_the_lease(place: Place) {
    let granary = Granary::start(place).await;
    let inside = Arc::new(AtomicU32::new(0));
    let mut contenders = Vec::new();
    for n in 0..8 {
        let client = granary.client(&format!("contender-{n}")).await;
        let inside = inside.clone();
        contenders.push(tokio::spawn(async move {
            let who = format!("contender-{n}");
            let mut turns = 0;
            while turns < 3 {
                if !take(&client, &who).await {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    continue;
                }
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two hold the lock");
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                release(&client, &who).await;
                turns += 1;
            }
        }));
    }
    for contender in contenders {
        super::support::in_time("every contender's turn", contender).await.unwrap();
    }
}

async fn a_recorder_publishes_and_counts(place: Place) {
    let granary = Granary::start(place).await;
    let client = granary.client("recorder").await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let object = maps.create(&PostParams::default(), &config_map("subject", &[])).await.unwrap();
    let reporter = Reporter { controller: "tests.granary.io/recorder".into(), instance: Some("one".into()) };
    let recorder = Recorder::new(client.clone(), reporter);
    let event = Event {
        type_: EventType::Warning,
        reason: "DiskSlow".into(),
        note: Some("the disk is slow".into()),
        action: "Watching".into(),
        secondary: None,
    };
    for _ in 0..3 {
        recorder.publish(&event, &object.object_ref(&())).await.unwrap();
    }
    let events: Api<EventsEvent> = Api::default_namespaced(client.clone());
    let list = events.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items.len(), 1);
    let found = &list.items[0];
    assert_eq!(found.note.as_deref(), Some("the disk is slow"));
    assert_eq!(found.series.as_ref().unwrap().count, 3);
    assert_eq!(found.regarding.as_ref().unwrap().uid, object.uid());
    // The same event, as core clients see it.
    let core: Api<CoreEvent> = Api::default_namespaced(client);
    let by_field = ListParams::default().fields("involvedObject.name=subject,reason=DiskSlow");
    let list = core.list(&by_field).await.unwrap();
    assert_eq!(list.items.len(), 1);
    assert_eq!(list.items[0].message.as_deref(), Some("the disk is slow"));
    assert_eq!(list.items[0].type_.as_deref(), Some("Warning"));
    let others = ListParams::default().fields("involvedObject.name=subject,reason!=DiskSlow");
    assert!(core.list(&others).await.unwrap().items.is_empty());
}
