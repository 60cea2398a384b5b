//! `granary describe`: everything about one object for a person: who it is, what is wanted, what
//! is, and what happened to it. Values of secrets are never shown.

use clap::Args;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    colour::{Paint, Tone},
    duration::age,
    error::{CliError, Result},
    event::{self, Event},
    exit::Exit,
    fieldpath::plain,
    goal::deletion_state,
    kinds::Kind,
    output::Output,
    request::Address,
    selection::ObjectRef,
    session::{Filter, Session},
    table,
    targets::{self, Target},
    text::{cell, printable},
    tree,
};

#[derive(Debug, Args)]
pub struct DescribeArgs {
    /// KIND NAME… or KIND/NAME…
    #[arg(value_name = "KIND", required = true)]
    pub what: Vec<String>,
}

pub async fn run(session: &Session, args: &DescribeArgs, output: &mut Output) -> Result<Exit> {
    let targets = targets::parse(&args.what, session.kinds().await?)?;
    if let Some(target) = targets.iter().find(|target| target.names.is_empty()) {
        return Err(CliError::Usage(format!(
            "name the object: granary describe {} NAME (`granary get {}` lists them)",
            target.kind.spoken(),
            target.kind.full_plural()
        )));
    }
    let mut exit = Exit::Ok;
    let mut first = true;
    for Target { kind, names } in &targets {
        for name in names {
            let namespace = session.scope(kind, false).map(String::from);
            let wanted = ObjectRef { kind: kind.clone(), namespace, name: name.clone() };
            let object = match session.get(&wanted.address()).await {
                Ok(object) => object,
                Err(error) if error.is_not_found() => {
                    let error = wanted.not_found(session);
                    output.error(&error)?;
                    exit = error.exit();
                    continue;
                }
                Err(error) => return Err(error),
            };
            let events = events_about(session, kind, &object).await;
            if !std::mem::replace(&mut first, false) {
                output.line("")?;
            }
            let paint = output.paint();
            output.text(&description(kind, &object, Timestamp::now(), paint))?;
            match events {
                Ok(events) => output.text(&events_section(&events, Timestamp::now(), paint))?,
                Err(error) => output.warning(format_args!("no events to show: {error}"))?,
            }
        }
    }
    Ok(exit)
}

/// Events name their object by kind and name; the uid tells apart a former object of that name.
async fn events_about(session: &Session, kind: &Kind, object: &Value) -> Result<Vec<Event>> {
    let Some(events) = session.kinds().await?.by_plural("", "events") else { return Ok(vec![]) };
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let fields = format!("involvedObject.name={name},involvedObject.kind={}", kind.kind);
    let filter = Filter { labels: None, fields: Some(fields) };
    let address = filter.apply(Address::collection(events, metadata["namespace"].as_str()));
    let uid = metadata["uid"].as_str().unwrap_or_default();
    let mut found: Vec<Event> = session.list(address).await?.iter().map(Event::read).collect();
    // The kubelet speaks of a node by its name instead of its uid.
    found.retain(|event| [uid, name, ""].contains(&event.about.uid.as_str()));
    event::sort_by_time(&mut found);
    Ok(found)
}

fn events_section(events: &[Event], now: Timestamp, paint: Paint) -> String {
    if events.is_empty() {
        return format!("{} <none>\n", paint.apply(Tone::Strong, "Events:"));
    }
    let rows: Vec<Vec<String>> = events
        .iter()
        .map(|event| vec![event.seen(now), cell(&event.kind), cell(&event.reason), cell(&event.message)])
        .collect();
    section("Events", &table::simple(&["LAST SEEN", "TYPE", "REASON", "MESSAGE"], &rows, paint), paint)
}

/// All but the events.
fn description(kind: &Kind, object: &Value, now: Timestamp, paint: Paint) -> String {
    let mut text = header(kind, object, now);
    let is_secret = kind.group.is_empty() && kind.kind == "Secret";
    let empty = Map::new();
    let map = object.as_object().unwrap_or(&empty);
    let own =
        map.iter().filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
    let (spec, others): (Vec<_>, Vec<_>) = own.partition(|(key, _)| *key == "spec");
    for (key, value) in spec.into_iter().chain(others) {
        let hidden;
        let value = if is_secret && matches!(key.as_str(), "data" | "stringData") {
            hidden = sizes_only(value);
            &hidden
        } else {
            value
        };
        text.push_str(&field_section(key, value, paint));
    }
    let mut status = map.get("status").cloned().unwrap_or_default();
    let conditions = status.as_object_mut().and_then(|status| status.remove("conditions"));
    if status.as_object().is_some_and(|status| !status.is_empty()) {
        text.push_str(&field_section("status", &status, paint));
    }
    if let Some(Value::Array(conditions)) = conditions {
        text.push_str(&conditions_section(&conditions, now, paint));
    }
    text
}

fn section(title: &str, body: &str, paint: Paint) -> String {
    let mut text = format!("{}\n", paint.apply(Tone::Strong, &format!("{title}:")));
    for line in body.lines() {
        text.push_str("  ");
        text.push_str(line);
        text.push('\n');
    }
    text
}

fn field_section(key: &str, value: &Value, paint: Paint) -> String {
    let mut title = printable(key).into_owned();
    if let Some(first) = title.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    match value {
        Value::Object(map) if !map.is_empty() => section(&title, &tree::render(map, 0), paint),
        other => {
            // A lone value stands behind its name, as in the tree.
            let mut lone = Map::new();
            lone.insert(title, other.clone());
            tree::render(&lone, 0)
        }
    }
}

/// The metadata that people look for; the rest of it is bookkeeping.
fn header(kind: &Kind, object: &Value, now: Timestamp) -> String {
    let metadata = &object["metadata"];
    let text_of = |key: &str| metadata[key].as_str().map(|text| printable(text).into_owned());
    let mut lines: Vec<(&str, Vec<String>)> = vec![("Name", text_of("name").into_iter().collect())];
    lines.push(("Namespace", text_of("namespace").into_iter().collect()));
    lines.push(("Kind", vec![format!("{} ({})", kind.kind, kind.api_version())]));
    lines.push(("Labels", pairs(&metadata["labels"])));
    lines.push(("Annotations", pairs(&metadata["annotations"])));
    let created = text_of("creationTimestamp").map(|at| match at.parse() {
        Ok(since) => format!("{at} ({} ago)", age(since, now)),
        Err(_) => at,
    });
    lines.push(("Created", created.into_iter().collect()));
    if let Some(at) = text_of("deletionTimestamp") {
        lines.push(("Deletion", vec![format!("{at}: {}", printable(&deletion_state(object)))]));
    }
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    let owners = owners.map(|owner| {
        let role = if owner["controller"] == true { " (controller)" } else { "" };
        format!("{}/{}{role}", plain(&owner["kind"]), plain(&owner["name"]))
    });
    lines.push(("Owners", owners.map(|owner| cell(&owner)).collect()));
    let finalizers = metadata["finalizers"].as_array().into_iter().flatten();
    lines.push(("Finalizers", finalizers.map(|name| cell(&plain(name))).collect()));
    lines.push(("UID", text_of("uid").into_iter().collect()));

    let mut text = String::new();
    for (title, values) in lines {
        let mut label = format!("{title}:");
        for value in values {
            text.push_str(format!("{label:<14}{value}").trim_end());
            text.push('\n');
            label.clear();
        }
    }
    text
}

fn pairs(map: &Value) -> Vec<String> {
    let entries = map.as_object().into_iter().flatten();
    // What kubectl remembers of the last apply is the object once more.
    let entries = entries.filter(|(key, _)| *key != "kubectl.kubernetes.io/last-applied-configuration");
    entries.map(|(key, value)| cell(&format!("{key}={}", plain(value)))).collect()
}

fn conditions_section(conditions: &[Value], now: Timestamp, paint: Paint) -> String {
    if conditions.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = conditions
        .iter()
        .map(|condition| {
            let text = |key: &str| cell(condition[key].as_str().unwrap_or_default());
            let since = condition["lastTransitionTime"].as_str().and_then(|at| at.parse().ok());
            let since = since.map(|since| age(since, now)).unwrap_or_default();
            vec![text("type"), text("status"), since, text("reason"), text("message")]
        })
        .collect();
    // True is not good news for every condition, so the status stays without colour.
    section(
        "Conditions",
        &table::simple(&["CONDITION", "IS", "SINCE", "REASON", "MESSAGE"], &rows, paint),
        paint,
    )
}

fn sizes_only(data: &Value) -> Value {
    let entries = data.as_object().into_iter().flatten();
    Value::Object(
        entries
            .map(|(key, value)| {
                let encoded = value.as_str().unwrap_or_default().trim_end_matches('=');
                (key.clone(), format!("{} bytes", encoded.len() * 3 / 4).into())
            })
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::kind;
    use serde_json::json;

    fn now() -> Timestamp {
        "2026-11-15T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn an_object_is_described_from_identity_to_conditions() {
        let volume = json!({
            "apiVersion": "longhorn.io/v1beta2", "kind": "Volume",
            "metadata": {
                "name": "v1", "namespace": "longhorn-system", "uid": "u-1",
                "creationTimestamp": "2026-11-15T11:00:00Z", "deletionTimestamp": "2026-11-15T11:59:00Z",
                "labels": {"app": "db", "tier": "gold"}, "annotations": {
                    "note": "two\nlines", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
                "finalizers": ["longhorn.io"],
                "ownerReferences": [{"kind": "Pool", "name": "p", "controller": true}],
                "managedFields": [{"manager": "x"}],
            },
            "spec": {"size": "10Gi", "replicas": 3},
            "status": {"state": "attached", "conditions": [
                {"type": "Scheduled", "status": "True", "lastTransitionTime": "2026-11-15T11:30:00Z"},
                {"type": "Restored", "status": "False", "reason": "NoBackup", "message": "nothing to restore"},
            ]},
        });
        let kind = kind("longhorn.io", "v1beta2", "Volume", "volumes", &[]);
        insta::assert_snapshot!(description(&kind, &volume, now(), Paint::Plain), @r"
        Name:         v1
        Namespace:    longhorn-system
        Kind:         Volume (longhorn.io/v1beta2)
        Labels:       app=db
                      tier=gold
        Annotations:  note=two...
        Created:      2026-11-15T11:00:00Z (60m ago)
        Deletion:     2026-11-15T11:59:00Z: it is being deleted and waits for longhorn.io
        Owners:       Pool/p (controller)
        Finalizers:   longhorn.io
        UID:          u-1
        Spec:
          replicas: 3
          size: 10Gi
        Status:
          state: attached
        Conditions:
          CONDITION   IS      SINCE   REASON     MESSAGE
          Scheduled   True    30m
          Restored    False           NoBackup   nothing to restore
        ");
    }

    #[test]
    fn kinds_without_a_spec_show_their_own_fields() {
        let class = json!({"metadata": {"name": "fast"}, "provisioner": "driver.longhorn.io",
            "parameters": {"numberOfReplicas": "3"}, "allowVolumeExpansion": true, "mountOptions": []});
        let mut kind = kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", &[]);
        kind.namespaced = false;
        insta::assert_snapshot!(description(&kind, &class, now(), Paint::Plain), @r"
        Name:         fast
        Kind:         StorageClass (storage.k8s.io/v1)
        AllowVolumeExpansion: true
        MountOptions: []
        Parameters:
          numberOfReplicas: 3
        Provisioner: driver.longhorn.io
        ");
    }

    #[test]
    fn the_values_of_a_secret_are_not_shown() {
        let secret =
            json!({"metadata": {"name": "s"}, "type": "Opaque", "data": {"password": "aHVudGVyMg=="}});
        let text = description(&kind("", "v1", "Secret", "secrets", &[]), &secret, now(), Paint::Plain);
        assert!(text.contains("password: 7 bytes"), "{text}");
        assert!(!text.contains("aHVudGVy"), "{text}");
    }

    #[test]
    fn events_follow_or_are_said_to_be_none() {
        assert_eq!(events_section(&[], now(), Paint::Plain), "Events: <none>\n");
        let event = Event::read(&json!({"type": "Warning", "reason": "Full", "message": "no space",
            "lastTimestamp": "2026-11-15T11:59:00Z"}));
        insta::assert_snapshot!(events_section(&[event], now(), Paint::Plain), @r"
        Events:
          LAST SEEN   TYPE      REASON   MESSAGE
          60s         Warning   Full     no space
        ");
    }
}
