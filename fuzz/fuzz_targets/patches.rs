//! Any document and any patch of every kind: nothing may panic, and what server-side apply returns must take
//! the same configuration again without a change.
#![no_main]

use std::sync::{Arc, LazyLock};

use granary_apiserver::builtin::KINDS;
use granary_apiserver::fields::{self, Set, WriteContext};
use granary_apiserver::patch;
use granary_apiserver::schema::{Definitions, Schema};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

static PODS: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let pod = KINDS.iter().find(|kind| kind.kind == "Pod").expect("pods are built in");
    Definitions::new().builtin(pod)
});

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    let mut parts = rest.splitn(2, |byte| *byte == b'\n');
    let parse = |bytes: Option<&[u8]>| serde_json::from_slice::<Value>(bytes.unwrap_or_default()).ok();
    let (Some(document), Some(change)) = (parse(parts.next()), parse(parts.next())) else { return };
    let mut object = document.clone();
    match choice % 4 {
        0 => drop(patch::json(&mut object, &change)),
        1 => patch::merge(&mut object, &change),
        2 => drop(patch::strategic(&PODS, &mut object, &change)),
        _ => apply(&document, &change),
    }
});

fn apply(live: &Value, config: &Value) {
    let context = WriteContext {
        manager: "fuzz",
        api_version: "v1",
        subresource: "",
        now: jiff::Timestamp::UNIX_EPOCH,
        zero: None,
    };
    let none = Set::default();
    let Ok(first) = fields::apply(&PODS, Some(live), config, &none, true, &context) else { return };
    let again = fields::apply(&PODS, Some(&first), config, &none, true, &context);
    assert_eq!(Some(first), again.ok(), "applying twice must be applying once");
}
