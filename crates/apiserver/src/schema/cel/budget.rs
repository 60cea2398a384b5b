//! How much one validation may compute: a counter that expressions draw on while they run.
//!
//! Owns the counter of this thread. Must never let an evaluation go on once it is empty.

use std::cell::Cell;

use kube_cel::cel::objects::Key;
use kube_cel::cel::{ExecutionError, ResolveResult, Value};

/// For all rules of one object together; the same number as in Kubernetes, in units that are alike: one unit
/// is about one step of the evaluation. It is used up in well under a second.
pub const PER_OBJECT: u64 = 10_000_000;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(0) };
    static EXHAUSTED: Cell<bool> = const { Cell::new(false) };
}

/// Sets what the next evaluation on this thread may use.
pub fn begin(units: u64) {
    LEFT.set(units);
    EXHAUSTED.set(false);
}

/// What the evaluation left over; `None` if it ran out.
pub fn end() -> Option<u64> {
    (!EXHAUSTED.get()).then(|| LEFT.get())
}

/// Takes units for work that is about to be done.
pub fn take(units: u64) -> Result<(), ExecutionError> {
    match LEFT.get().checked_sub(units) {
        Some(left) => {
            LEFT.set(left);
            Ok(())
        }
        None => {
            LEFT.set(0);
            EXHAUSTED.set(true);
            Err(ExecutionError::function_error("budget", "exhausted"))
        }
    }
}

/// Passes a value through and charges for it, so that copies of large values are paid for.
pub fn spend(value: Value, steps: i64) -> ResolveResult {
    take(steps.unsigned_abs() + size(&value, LEFT.get()))?;
    Ok(value)
}

/// The units of a value, counted no further than `limit`.
fn size(value: &Value, limit: u64) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64 / 32,
        Value::Bytes(bytes) => 1 + bytes.len() as u64 / 32,
        Value::List(list) => {
            let mut total = 1;
            for item in list.iter() {
                if total > limit {
                    break;
                }
                total += size(item, limit);
            }
            total
        }
        Value::Map(map) => {
            let mut total = 1;
            for (key, item) in map.map.iter() {
                if total > limit {
                    break;
                }
                let key = if let Key::String(key) = key { key.len() as u64 / 32 } else { 0 };
                total += 1 + key + size(item, limit);
            }
            total
        }
        _ => 1,
    }
}
