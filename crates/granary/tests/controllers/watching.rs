//! Watchers and reflectors: what they see, in which order, and that they end up with what is there.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{WatchStreamExt, reflector};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::config_map;
use super::support::{Granary, Place, eventually, in_time};

crate::everywhere!(
    a_watcher_lists_and_then_follows,
    a_streaming_watcher_lists_and_then_follows,
    a_reflector_converges_under_concurrent_changes,
    a_streaming_reflector_converges_under_concurrent_changes,
    an_object_enters_and_leaves_a_label_selector,
    an_object_enters_and_leaves_a_field_selector,
    a_watch_from_a_version_misses_nothing,
    a_version_that_is_too_old_is_gone,
    a_paged_list_is_one_moment,
    metadata_alone_can_be_watched,
);

/// Events as short words.
fn words(stream: impl Stream<Item = watcher::Result<Event<ConfigMap>>>) -> impl Stream<Item = String> {
    stream.map(|event| match event.unwrap() {
        Event::Init => "init".into(),
        Event::InitDone => "done".into(),
        Event::InitApply(object) => format!("initially {}", object.name_any()),
        Event::Apply(object) => format!("apply {}", object.name_any()),
        Event::Delete(object) => format!("delete {}", object.name_any()),
    })
}

async fn follow(place: Place, config: watcher::Config) {
    let granary = Granary::start(place).await;
    let api: Api<ConfigMap> = Api::default_namespaced(granary.client("watcher").await);
    for name in ["a", "b"] {
        api.create(&PostParams::default(), &config_map(name, &[])).await.unwrap();
    }
    let mut events = std::pin::pin!(words(watcher(api.clone(), config)));
    let mut next = async || in_time("an event", events.next()).await.unwrap();
    assert_eq!(next().await, "init");
    assert_eq!([next().await, next().await], ["initially a", "initially b"]);
    assert_eq!(next().await, "done");
    api.create(&PostParams::default(), &config_map("c", &[])).await.unwrap();
    assert_eq!(next().await, "apply c");
    let change = json!({ "data": { "k": "v" } });
    api.patch("a", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    // The same again changes nothing, and nothing is what a watcher sees of it.
    api.patch("a", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    api.delete("b", &DeleteParams::default()).await.unwrap();
    assert_eq!([next().await, next().await], ["apply a", "delete b"]);
}

async fn a_watcher_lists_and_then_follows(place: Place) {
    // A page of one makes the list of two a paged one.
    follow(place, watcher::Config::default().page_size(1)).await;
}

async fn a_streaming_watcher_lists_and_then_follows(place: Place) {
    follow(place, watcher::Config::default().streaming_lists()).await;
}

async fn converge(place: Place, config: watcher::Config) {
    const WRITERS: usize = 6;
    let granary = Granary::start(place).await;
    let client = granary.client("reflector").await;
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for n in 0..20 {
        api.create(&PostParams::default(), &config_map(&format!("early-{n}"), &[])).await.unwrap();
    }
    let (reader, writer) = reflector::store();
    let stream = reflector::reflector(writer, watcher(api.clone(), config)).default_backoff();
    let task = tokio::spawn(stream.for_each(|_| async {}));
    let writers: Vec<_> = (0..WRITERS)
        .map(|w| {
            let api = api.clone();
            tokio::spawn(async move {
                for n in 0..15 {
                    let name = format!("w{w}-{n}");
                    api.create(&PostParams::default(), &config_map(&name, &[])).await.unwrap();
                    let change = json!({ "data": { "n": n.to_string() } });
                    api.patch(&name, &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
                    if n % 3 == 0 {
                        api.delete(&name, &DeleteParams::default()).await.unwrap();
                    }
                }
            })
        })
        .collect();
    in_time("the first list", reader.wait_until_ready()).await.unwrap();
    for writer in writers {
        writer.await.unwrap();
    }
    let versions = |objects: &[ConfigMap]| -> BTreeMap<String, String> {
        objects.iter().map(|o| (o.name_any(), o.resource_version().unwrap())).collect()
    };
    let truth = versions(&api.list(&ListParams::default()).await.unwrap().items);
    assert_eq!(truth.len(), 20 + WRITERS * 10);
    eventually("the reflector to hold what is there", || async {
        let held: Vec<ConfigMap> = reader.state().iter().map(|o| (**o).clone()).collect();
        (versions(&held) == truth).then_some(())
    })
    .await;
    task.abort();
}

async fn a_reflector_converges_under_concurrent_changes(place: Place) {
    converge(place, watcher::Config::default()).await;
}

async fn a_streaming_reflector_converges_under_concurrent_changes(place: Place) {
    converge(place, watcher::Config::default().streaming_lists()).await;
}

async fn an_object_enters_and_leaves_a_label_selector(place: Place) {
    let granary = Granary::start(place).await;
    let api: Api<ConfigMap> = Api::default_namespaced(granary.client("watcher").await);
    api.create(&PostParams::default(), &config_map("in", &[("app", "web")])).await.unwrap();
    api.create(&PostParams::default(), &config_map("out", &[("app", "db")])).await.unwrap();
    let config = watcher::Config::default().labels("app=web");
    let mut events = std::pin::pin!(words(watcher(api.clone(), config)));
    let mut next = async || in_time("an event", events.next()).await.unwrap();
    assert_eq!([next().await, next().await, next().await], ["init", "initially in", "done"]);
    let relabel = async |name: &str, app: Option<&str>| {
        let change = json!({ "metadata": { "labels": { "app": app } } });
        api.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    };
    relabel("out", Some("web")).await;
    assert_eq!(next().await, "apply out");
    relabel("in", None).await;
    assert_eq!(next().await, "delete in");
    api.delete("in", &DeleteParams::default()).await.unwrap();
    relabel("out", Some("db")).await;
    assert_eq!(next().await, "delete out", "what had left before is not deleted once more");
    relabel("out", Some("web")).await;
    assert_eq!(next().await, "apply out");
    api.delete("out", &DeleteParams::default()).await.unwrap();
    assert_eq!(next().await, "delete out");
}

async fn an_object_enters_and_leaves_a_field_selector(place: Place) {
    use k8s_openapi::api::core::v1::Pod;
    let granary = Granary::start(place).await;
    let api: Api<Pod> = Api::default_namespaced(granary.client("watcher").await);
    let pod = |name: &str| -> Pod {
        let spec = json!({ "containers": [{ "name": "main", "image": "x" }] });
        serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
    };
    for name in ["one", "two"] {
        api.create(&PostParams::default(), &pod(name)).await.unwrap();
    }
    let config = watcher::Config::default().fields("status.phase=Running,metadata.name=one");
    let mut events = std::pin::pin!(watcher(api.clone(), config).try_filter_map(async |event| {
        Ok(match event {
            Event::Apply(pod) => Some(format!("apply {}", pod.name_any())),
            Event::Delete(pod) => Some(format!("delete {}", pod.name_any())),
            Event::InitApply(pod) => Some(format!("initially {}", pod.name_any())),
            Event::Init => None,
            Event::InitDone => Some("done".into()),
        })
    }));
    let mut next = async || in_time("an event", events.try_next()).await.unwrap().unwrap();
    assert_eq!(next().await, "done");
    let phase = async |name: &str, phase: &str| {
        let change = json!({ "status": { "phase": phase } });
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    };
    phase("two", "Running").await;
    phase("one", "Running").await;
    assert_eq!(next().await, "apply one");
    phase("one", "Succeeded").await;
    assert_eq!(next().await, "delete one");
}

async fn a_watch_from_a_version_misses_nothing(place: Place) {
    let granary = Granary::start(place).await;
    let api: Api<ConfigMap> = Api::default_namespaced(granary.client("watcher").await);
    let start = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut wanted = Vec::new();
    for n in 0..300 {
        let name = format!("c{n}");
        let made = api.create(&PostParams::default(), &config_map(&name, &[])).await.unwrap();
        wanted.push((name.clone(), made.resource_version().unwrap()));
        if n % 10 == 0 {
            api.delete(&name, &DeleteParams::default()).await.unwrap();
        }
    }
    let mut stream = std::pin::pin!(api.watch(&WatchParams::default(), &start).await.unwrap());
    let (mut added, mut deleted, mut last) = (Vec::new(), 0, 0u64);
    while added.len() < wanted.len() || deleted < 30 {
        let event = in_time("an event", stream.try_next()).await.unwrap().unwrap();
        let object = match event {
            WatchEvent::Added(object) => {
                added.push((object.name_any(), object.resource_version().unwrap()));
                object
            }
            WatchEvent::Deleted(object) => {
                deleted += 1;
                object
            }
            other => panic!("{other:?}"),
        };
        let version: u64 = object.resource_version().unwrap().parse().unwrap();
        assert!(version > last, "versions grow along a watch");
        last = version;
    }
    assert_eq!(added, wanted);
}

async fn a_version_that_is_too_old_is_gone(place: Place) {
    let granary = Granary::start_with_history(place, Duration::from_secs(1)).await;
    let api: Api<ConfigMap> = Api::default_namespaced(granary.client("watcher").await);
    let start = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    api.create(&PostParams::default(), &config_map("a", &[])).await.unwrap();
    let page = api.list(&ListParams::default().limit(1)).await.unwrap();
    api.create(&PostParams::default(), &config_map("b", &[])).await.unwrap();
    let page_of_two = api.list(&ListParams::default().limit(1)).await.unwrap();
    let token = page_of_two.metadata.continue_.unwrap();
    assert_eq!(page.metadata.continue_, None);

    // This watcher has listed and falls asleep before it watches.
    let mut sleeper = std::pin::pin!(watcher(api.clone(), watcher::Config::default()));
    while !matches!(in_time("the list", sleeper.try_next()).await.unwrap(), Some(Event::InitDone)) {}
    let code = eventually("history to be forgotten", || async {
        // Enough to push out what is still in memory.
        let change = json!({ "data": { "t": tag(), "much": "x".repeat(500_000) } });
        api.patch("a", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
        let mut stream = std::pin::pin!(api.watch(&WatchParams::default(), &start).await.ok()?);
        match in_time("an event", stream.next()).await {
            Some(Ok(WatchEvent::Error(status))) => Some((status.code, status.reason.clone())),
            _ => None,
        }
    })
    .await;
    assert_eq!(code, (410, "Expired".to_string()));
    let next = ListParams::default().limit(1).continue_token(&token);
    let refused = eventually("the page to be forgotten", || async { api.list(&next).await.err() }).await;
    let kube::Error::Api(status) = refused else { panic!("{refused}") };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    let again = status.metadata.as_ref().unwrap().continue_.clone().unwrap();
    let rest = api.list(&ListParams::default().limit(1).continue_token(&again)).await.unwrap();
    assert_eq!(rest.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["b"]);
    // The sleeper is told that it is too late, and lists again by itself.
    let late = in_time("an event", sleeper.try_next()).await.unwrap_err();
    assert!(matches!(&late, watcher::Error::WatchError(status) if status.code == 410), "{late}");
    let again: Vec<_> = words(sleeper).take(4).collect().await;
    assert_eq!(again, ["init", "initially a", "initially b", "done"]);
}

async fn a_paged_list_is_one_moment(place: Place) {
    let granary = Granary::start(place).await;
    let api: Api<ConfigMap> = Api::default_namespaced(granary.client("lister").await);
    for n in 0..25 {
        api.create(&PostParams::default(), &config_map(&format!("p{n:02}"), &[])).await.unwrap();
    }
    let mut parameters = ListParams::default().limit(10);
    let mut names = Vec::new();
    let mut versions = std::collections::BTreeSet::new();
    loop {
        let page = api.list(&parameters).await.unwrap();
        names.extend(page.items.iter().map(ResourceExt::name_any));
        versions.insert(page.metadata.resource_version);
        let Some(token) = page.metadata.continue_ else { break };
        assert_eq!(page.metadata.remaining_item_count, Some(25 - names.len() as i64));
        parameters = parameters.continue_token(&token);
        api.create(&PostParams::default(), &config_map(&format!("p{:02}x", names.len()), &[])).await.unwrap();
        api.delete(&format!("p{:02}", names.len() + 1), &DeleteParams::default()).await.unwrap();
    }
    let wanted: Vec<_> = (0..25).map(|n| format!("p{n:02}")).collect();
    assert_eq!(names, wanted, "what changes meanwhile does not show");
    assert_eq!(versions.len(), 1);
}

async fn metadata_alone_can_be_watched(place: Place) {
    let granary = Granary::start(place).await;
    let client = granary.client("watcher").await;
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let metadata: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(client);
    let mut object = config_map("a", &[("k", "v")]);
    object.data = Some(BTreeMap::from([("big".into(), "x".repeat(100))]));
    api.create(&PostParams::default(), &object).await.unwrap();
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let mut events = std::pin::pin!(watcher(metadata.clone(), config));
        loop {
            match in_time("an event", events.try_next()).await.unwrap().unwrap() {
                Event::InitApply(seen) => assert_eq!(seen.labels()["k"], "v"),
                Event::InitDone => break,
                _ => {}
            }
        }
        let change = json!({ "metadata": { "labels": { "k": "v", "t": tag() } } });
        api.patch("a", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
        let seen = in_time("an event", events.try_next()).await.unwrap().unwrap();
        assert!(matches!(&seen, Event::Apply(object) if object.labels().contains_key("t")), "{seen:?}");
    }
}

/// Something that was not there before.
fn tag() -> String {
    format!("t{}", std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos())
}
