//! RFC 6902 JSON patch, with the tolerance and the limits of the Kubernetes API.
//!
//! Owns the reading of operations and what they may cost. Must never let a small patch make a huge or
//! bottomless document.

use json_patch::jsonptr::{Pointer, PointerBuf};
use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchErrorKind, PatchOperation, RemoveOperation,
    ReplaceOperation, TestOperation, patch_unsafe,
};
use serde_json::{Map, Value};

use super::PatchError;
use crate::fields::deeper_than;

/// As many as a Kubernetes API server takes.
const MAX_OPERATIONS: usize = 10_000;

/// All `copy` operations of one patch together: a copy of a copy grows without bounds otherwise.
const MAX_COPIED: usize = 16 << 20;

/// Leaves room below the 127 levels that JSON is read back with.
const MAX_DEPTH: usize = 120;

/// Applies the operations of `patch` one after the other.
pub fn json(doc: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let operations =
        patch.as_array().ok_or_else(|| malformed("a JSON patch must be a list of operations"))?;
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    let mut copied = 0;
    for operation in operations {
        let operation = tolerate(doc, read(operation)?);
        if is_absent_as_expected(doc, &operation) {
            continue;
        }
        check_growth(doc, &operation, &mut copied)?;
        patch_unsafe(doc, std::slice::from_ref(&operation)).map_err(|e| refusal(&operation, &e.kind))?;
    }
    Ok(())
}

fn read(operation: &Value) -> Result<PatchOperation, PatchError> {
    let fields = operation.as_object().ok_or_else(|| unfit("an operation must be an object"))?;
    let path = pointer(fields, "path")?;
    // An operation without a value has the value null.
    let value = || fields.get("value").cloned().unwrap_or_default();
    Ok(match fields.get("op").and_then(Value::as_str) {
        Some("add") => PatchOperation::Add(AddOperation { path, value: value() }),
        Some("remove") => PatchOperation::Remove(RemoveOperation { path }),
        Some("replace") => PatchOperation::Replace(ReplaceOperation { path, value: value() }),
        Some("move") => PatchOperation::Move(MoveOperation { from: pointer(fields, "from")?, path }),
        Some("copy") => PatchOperation::Copy(CopyOperation { from: pointer(fields, "from")?, path }),
        Some("test") => PatchOperation::Test(TestOperation { path, value: value() }),
        Some(other) => return Err(unfit(&format!("unexpected kind of operation: {other:?}"))),
        None => return Err(unfit("an operation must have an op")),
    })
}

fn pointer(fields: &Map<String, Value>, name: &str) -> Result<PointerBuf, PatchError> {
    let text = fields.get(name).and_then(Value::as_str);
    let text = text.ok_or_else(|| unfit(&format!("an operation must have a {name}")))?;
    PointerBuf::parse(text).map_err(|_| unfit(&format!("{text:?} is not a JSON pointer")))
}

/// Clients replace members that are not there yet, and Kubernetes lets them.
fn tolerate(doc: &Value, operation: PatchOperation) -> PatchOperation {
    match operation {
        PatchOperation::Replace(ReplaceOperation { path, value }) if is_new_member(doc, &path) => {
            PatchOperation::Add(AddOperation { path, value })
        }
        operation => operation,
    }
}

fn is_new_member(doc: &Value, path: &Pointer) -> bool {
    let parent = path.split_back().and_then(|(parent, _)| doc.pointer(parent.as_str()));
    parent.is_some_and(Value::is_object) && doc.pointer(path.as_str()).is_none()
}

/// Clients test that a member is null to say that it must not be there.
fn is_absent_as_expected(doc: &Value, operation: &PatchOperation) -> bool {
    match operation {
        PatchOperation::Test(test) => test.value.is_null() && doc.pointer(test.path.as_str()).is_none(),
        _ => false,
    }
}

fn check_growth(doc: &Value, operation: &PatchOperation, copied: &mut usize) -> Result<(), PatchError> {
    let value = match operation {
        PatchOperation::Add(op) => Some(&op.value),
        PatchOperation::Replace(op) => Some(&op.value),
        PatchOperation::Move(op) => doc.pointer(op.from.as_str()),
        PatchOperation::Copy(op) => doc.pointer(op.from.as_str()),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => None,
    };
    let Some(value) = value else { return Ok(()) };
    let level = operation.path().count();
    if level > MAX_DEPTH || deeper_than(value, MAX_DEPTH - level) {
        return Err(PatchError::Unprocessable(format!(
            "the patch nests values more than {MAX_DEPTH} levels deep"
        )));
    }
    if matches!(operation, PatchOperation::Copy(_)) {
        *copied = copied.saturating_add(weight(value));
        if *copied > MAX_COPIED {
            return Err(PatchError::TooLarge(format!("a JSON patch may copy at most {MAX_COPIED} bytes")));
        }
    }
    Ok(())
}

/// About the bytes that a value takes.
fn weight(value: &Value) -> usize {
    let inner = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + weight(value)).sum(),
        _ => 0,
    };
    inner + size_of::<Value>()
}

fn refusal(operation: &PatchOperation, kind: &PatchErrorKind) -> PatchError {
    let (name, path) = match operation {
        PatchOperation::Add(op) => ("add", &op.path),
        PatchOperation::Remove(op) => ("remove", &op.path),
        PatchOperation::Replace(op) => ("replace", &op.path),
        PatchOperation::Move(op) => ("move", &op.path),
        PatchOperation::Copy(op) => ("copy", &op.path),
        PatchOperation::Test(op) => ("test", &op.path),
    };
    PatchError::Unprocessable(match kind {
        PatchErrorKind::TestFailed => format!("testing value {path} failed"),
        PatchErrorKind::InvalidFromPointer => {
            format!("{name} operation does not apply: the document has nothing at its \"from\" path")
        }
        PatchErrorKind::CannotMoveInsideItself => {
            format!("{name} operation does not apply: {path} is inside what is moved")
        }
        _ => format!("{name} operation does not apply: the document has no path {path}"),
    })
}

fn malformed(why: &str) -> PatchError {
    PatchError::Malformed(why.to_owned())
}

/// An operation that makes no sense is told apart from a body that is no patch at all.
fn unfit(why: &str) -> PatchError {
    PatchError::Unprocessable(why.to_owned())
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "the stories pass literals")]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(mut doc: Value, patch: Value) -> Result<Value, PatchError> {
        super::json(&mut doc, &patch).map(|()| doc)
    }

    #[test]
    fn the_six_operations_do_what_the_rfc_says() {
        let doc = json!({"a": {"b": [1, 2]}, "c": "x"});
        for (patch, want) in [
            (json!([{"op": "add", "path": "/a/b/-", "value": 3}]), json!({"a": {"b": [1, 2, 3]}, "c": "x"})),
            (json!([{"op": "add", "path": "/a/b/0", "value": 0}]), json!({"a": {"b": [0, 1, 2]}, "c": "x"})),
            (json!([{"op": "remove", "path": "/a/b/0"}]), json!({"a": {"b": [2]}, "c": "x"})),
            (json!([{"op": "replace", "path": "/c", "value": null}]), json!({"a": {"b": [1, 2]}, "c": null})),
            (json!([{"op": "move", "from": "/c", "path": "/a/c"}]), json!({"a": {"b": [1, 2], "c": "x"}})),
            (
                json!([{"op": "copy", "from": "/c", "path": "/d"}]),
                json!({"a": {"b": [1, 2]}, "c": "x", "d": "x"}),
            ),
            (json!([{"op": "test", "path": "/c", "value": "x"}]), doc.clone()),
            (
                json!([{"op": "add", "path": "/m~1n~0", "value": 1}]),
                json!({"a": {"b": [1, 2]}, "c": "x", "m/n~": 1}),
            ),
        ] {
            assert_eq!(patched(doc.clone(), patch.clone()), Ok(want), "{patch}");
        }
    }

    #[test]
    fn a_missing_member_is_null_to_a_test() {
        let add_finalizer = json!([
            {"op": "test", "path": "/metadata/finalizers", "value": null},
            {"op": "add", "path": "/metadata/finalizers", "value": ["keep"]},
        ]);
        let want = json!({"metadata": {"finalizers": ["keep"]}});
        assert_eq!(patched(json!({"metadata": {}}), add_finalizer.clone()), Ok(want));
        let taken = patched(json!({"metadata": {"finalizers": ["other"]}}), add_finalizer);
        assert!(matches!(taken, Err(PatchError::Unprocessable(_))));
        let unlike = patched(json!({}), json!([{"op": "test", "path": "/a", "value": 1}]));
        assert!(matches!(unlike, Err(PatchError::Unprocessable(_))));
    }

    #[test]
    fn a_missing_member_can_be_replaced() {
        let patch = json!([{"op": "replace", "path": "/metadata/labels", "value": {"a": "b"}}]);
        assert_eq!(patched(json!({"metadata": {}}), patch), Ok(json!({"metadata": {"labels": {"a": "b"}}})));
    }

    #[test]
    fn what_does_not_fit_the_document_is_unprocessable() {
        for patch in [
            json!([{"op": "remove", "path": "/nope"}]),
            json!([{"op": "replace", "path": "/nope/deeper", "value": 1}]),
            json!([{"op": "replace", "path": "/list/1", "value": 1}]),
            json!([{"op": "add", "path": "/nope/deeper", "value": 1}]),
            json!([{"op": "add", "path": "/list/7", "value": 1}]),
            json!([{"op": "copy", "from": "/nope", "path": "/a"}]),
            json!([{"op": "move", "from": "/list", "path": "/list/0"}]),
            json!([{"op": "remove", "path": ""}]),
            json!([{"op": "test", "path": "/list", "value": [2]}]),
        ] {
            let refused = patched(json!({"list": [1]}), patch.clone());
            assert!(matches!(refused, Err(PatchError::Unprocessable(_))), "{patch}: {refused:?}");
        }
    }

    #[test]
    fn what_is_no_patch_is_malformed() {
        assert!(matches!(patched(json!({}), json!({})), Err(PatchError::Malformed(_))));
    }

    #[test]
    fn an_operation_without_sense_cannot_be_processed() {
        for patch in [
            json!([1]),
            json!([{"path": "/a"}]),
            json!([{"op": "add", "value": 1}]),
            json!([{"op": "frobnicate", "path": "/a"}]),
            json!([{"op": "copy", "path": "/a"}]),
            json!([{"op": "add", "path": "a", "value": 1}]),
            json!([{"op": "add", "path": "/~2", "value": 1}]),
        ] {
            let refused = patched(json!({}), patch.clone());
            assert!(matches!(refused, Err(PatchError::Unprocessable(_))), "{patch}: {refused:?}");
        }
    }

    #[test]
    fn a_patch_has_at_most_ten_thousand_operations() {
        let patch = |n| Value::Array(vec![json!({"op": "test", "path": "/a", "value": 1}); n]);
        assert!(patched(json!({"a": 1}), patch(10_000)).is_ok());
        assert!(matches!(patched(json!({"a": 1}), patch(10_001)), Err(PatchError::TooLarge(_))));
    }

    #[test]
    fn copies_of_copies_cannot_fill_the_memory() {
        let doubling: Vec<Value> =
            (0..60).map(|n| json!({"op": "copy", "from": "", "path": format!("/c{n}")})).collect();
        assert!(patched(json!({"a": "x".repeat(1000)}), Value::Array(doubling)).is_err());
        let flat = json!([
            {"op": "copy", "from": "/a", "path": "/a/-"}, {"op": "copy", "from": "/a", "path": "/b"},
        ]);
        assert!(patched(json!({"a": [1]}), flat).is_ok());
    }

    #[test]
    fn documents_cannot_be_made_too_deep_to_be_read_again() {
        let deeper = |n: usize| json!({"op": "add", "path": "/a".repeat(n + 1), "value": {}});
        let ladder: Vec<Value> = (0..500).map(deeper).collect();
        assert!(matches!(patched(json!({}), Value::Array(ladder)), Err(PatchError::Unprocessable(_))));
        let allowed: Vec<Value> = (0..110).map(deeper).collect();
        let doc = patched(json!({}), Value::Array(allowed)).unwrap();
        let text = serde_json::to_string(&doc).unwrap();
        assert!(serde_json::from_str::<Value>(&text).is_ok());
    }
}
