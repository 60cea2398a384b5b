//! The objects that are written: ConfigMaps of 2 KiB, the size that the project's promises speak of.
//!
//! Only makes bytes and paths; sending them is the load generators' business.

use bytes::Bytes;

pub const NAMESPACE: &str = "api-bench";
const SIZE: usize = 2048;

pub fn collection() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps")
}

pub fn path(number: usize) -> String {
    format!("{}/{}", collection(), name(number))
}

fn name(number: usize) -> String {
    format!("object-{number:07}")
}

/// One ConfigMap as JSON. `round` makes each version of an object different from the one before.
pub fn body(number: usize, round: u32) -> Bytes {
    let head = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}","namespace":"{NAMESPACE}","labels":{{"tenth":"{}"}}}},"data":{{"round":"{round}","payload":""#,
        name(number),
        number % 10,
    );
    let tail = r#""}}"#;
    let mut text = head;
    // Text that no compression shrinks to nothing: a small generator, seeded by what the object is.
    let mut state = (number as u64) << 32 | u64::from(round) | 1;
    while text.len() < SIZE - tail.len() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push(char::from(b'a' + (state >> 33) as u8 % 26));
    }
    text.push_str(tail);
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_the_promised_size_and_is_json() {
        let body = body(42, 7);
        assert_eq!(body.len(), SIZE);
        let parsed: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(parsed["metadata"]["name"], "object-0000042");
        assert_eq!(parsed["data"]["round"], "7");
    }

    #[test]
    fn rounds_differ() {
        assert_ne!(body(1, 1), body(1, 2));
    }
}
