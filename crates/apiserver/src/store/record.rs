//! One stored revision: what happened to which key, what was there before, and the object itself.
//!
//! Owns the byte layout. Must never interpret the object's JSON.

use bytes::Bytes;

use super::document::Document;
use super::key::Key;

/// What a revision did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Created,
    Updated,
    Deleted,
}

/// One revision as it is read back.
#[derive(Debug, Clone)]
pub struct Record {
    pub change: Change,
    /// The revision of the same key that this one follows, which for a creation may be an earlier deletion;
    /// 0 when there is none.
    pub previous: u64,
    pub key: Key,
    pub json: Bytes,
}

/// Layout, little endian: flags u8, previous u64, key length u16, key, JSON to the end.
/// Bits 0 and 1 of flags hold the change, bit 2 tells that the object has owners.
const HEADER: usize = 11;
const OWNED: u8 = 0b100;

impl Record {
    /// The record of a document that becomes `revision`, and the JSON within it.
    pub fn encode(
        change: Change,
        previous: u64,
        key: &Key,
        document: &Document,
        revision: u64,
    ) -> (Bytes, Bytes) {
        let key = key.as_str().as_bytes();
        let digits = revision.to_string();
        let (head, tail) = document.halves();
        let mut bytes = Vec::with_capacity(HEADER + key.len() + document.len() + digits.len());
        let flags = change as u8 | if document.owners.is_empty() { 0 } else { OWNED };
        bytes.push(flags);
        bytes.extend_from_slice(&previous.to_le_bytes());
        bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
        for part in [key, head, digits.as_bytes(), tail] {
            bytes.extend_from_slice(part);
        }
        let bytes = Bytes::from(bytes);
        let json = bytes.slice(HEADER + key.len()..);
        (bytes, json)
    }

    /// `None` when the bytes are not a record.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let head = Header::decode(bytes)?;
        Some(Self {
            change: head.change,
            previous: head.previous,
            key: Key::from_stored(head.key),
            json: Bytes::copy_from_slice(head.json),
        })
    }
}

/// A record whose key and JSON still lie in the page they were read from.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    pub change: Change,
    pub previous: u64,
    /// Whether the object names owners, so that only those objects are parsed for the owner index.
    pub owned: bool,
    pub key: &'a str,
    pub json: &'a [u8],
}

impl<'a> Header<'a> {
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(HEADER)?;
        let change = match head[0] & 0b11 {
            0 => Change::Created,
            1 => Change::Updated,
            2 => Change::Deleted,
            _ => return None,
        };
        let previous = u64::from_le_bytes(head[1..9].try_into().ok()?);
        let key_len = usize::from(u16::from_le_bytes(head[9..11].try_into().ok()?));
        let (key, json) = rest.split_at_checked(key_len)?;
        let key = std::str::from_utf8(key).ok()?;
        Some(Self { change, previous, owned: head[0] & OWNED != 0, key, json })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{Change, Header, Record};
    use crate::store::Key;
    use crate::store::document::Document;

    proptest! {
        #[test]
        fn a_record_reads_back_as_written(previous: u64, revision: u64, owned: bool, change in 0..3u8, text: String) {
            let change = [Change::Created, Change::Updated, Change::Deleted][usize::from(change)];
            let key = Key::new("configmaps.", "ns", "name");
            let owners = if owned { json!([{ "uid": "a" }]) } else { json!([]) };
            let mut object = json!({ "metadata": { "ownerReferences": owners }, "data": text });
            let (bytes, json) = Record::encode(change, previous, &key, &Document::of(&object), revision);
            prop_assert_eq!(Header::decode(&bytes).unwrap().owned, owned);
            let back = Record::decode(&bytes).unwrap();
            prop_assert_eq!((back.change, back.previous), (change, previous));
            prop_assert_eq!(back.key, key);
            prop_assert_eq!(&back.json, &json);
            object["metadata"]["resourceVersion"] = revision.to_string().into();
            prop_assert_eq!(serde_json::from_slice::<Value>(&json).unwrap(), object);
        }

        #[test]
        fn garbage_is_refused_without_a_panic(bytes: Vec<u8>) {
            let _ = Record::decode(&bytes);
        }
    }
}
