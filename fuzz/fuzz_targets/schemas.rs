//! Any JSON as the schema of a custom kind, then any JSON as an object of it: nothing may panic, and pruning
//! and defaulting must come to rest.
#![no_main]

use granary_apiserver::schema;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |byte| *byte == b'\n');
    let parse = |bytes: Option<&[u8]>| serde_json::from_slice::<Value>(bytes.unwrap_or_default()).ok();
    let (Some(open_api), Some(mut object)) = (parse(parts.next()), parse(parts.next())) else { return };
    let refused = schema::check_crd_schema(&open_api, "schema", true);
    let Ok(shape) = schema::from_crd(&open_api) else { return };
    if !refused.is_empty() || !object.is_object() {
        return;
    }
    schema::prune(&shape, &mut object);
    assert!(schema::unknown_fields(&shape, &object).is_empty(), "pruning left unknown fields");
    schema::apply_defaults(&shape, &mut object);
    let once = object.clone();
    schema::apply_defaults(&shape, &mut object);
    assert_eq!(once, object, "defaults must not pile up");
    schema::validate(&shape, &object, Some(&once));
});
