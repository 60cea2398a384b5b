//! Any bytes as the body of a request: decoded, pruned, defaulted and validated as every built-in kind.
//! Nothing may panic, and doing it twice must not change more than doing it once.
#![no_main]

use std::sync::{Arc, LazyLock};

use granary_apiserver::builtin::{Builtin, KINDS};
use granary_apiserver::http::media;
use granary_apiserver::schema::{self, Definitions, Schema};
use libfuzzer_sys::fuzz_target;

static SCHEMAS: LazyLock<Vec<(&'static Builtin, Arc<Schema>)>> = LazyLock::new(|| {
    let mut definitions = Definitions::new();
    KINDS.iter().map(|kind| (*kind, definitions.builtin(kind))).collect()
});

const TYPES: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

fuzz_target!(|data: &[u8]| {
    let Some((choice, body)) = data.split_first() else { return };
    let content_type = TYPES[usize::from(*choice) % TYPES.len()];
    let Ok(decoded) = media::decode(content_type, body) else { return };
    let (kind, shape) = &SCHEMAS[usize::from(*choice) % SCHEMAS.len()];
    let mut object = decoded.value;
    if !object.is_object() || schema::type_errors(shape, &object).is_some() {
        return;
    }
    schema::prune(shape, &mut object);
    assert!(schema::unknown_fields(shape, &object).is_empty(), "pruning left unknown fields");
    schema::apply_defaults(shape, &mut object);
    (kind.default)(&mut object);
    let once = object.clone();
    schema::apply_defaults(shape, &mut object);
    (kind.default)(&mut object);
    assert_eq!(once, object, "defaults must not pile up");
    let mut errors = Vec::new();
    (kind.validate)(&object, Some(&once), &mut errors);
    (kind.validate)(&object, None, &mut errors);
    let cells = (kind.row)(&object, jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(cells.len(), kind.columns.len());
    (kind.fields)(&object);
});
