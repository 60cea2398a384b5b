//! Meta contexts: what a client asks for by name, and whether that is the one context we have.
//! Only `base:allocation` exists here.

use bytes::Buf;

use super::wire::{ALLOCATION_CONTEXT, MAX_STRING};

/// The data of LIST_META_CONTEXT and SET_META_CONTEXT.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ContextQuery<'a> {
    pub export: &'a [u8],
    pub names: Vec<&'a [u8]>,
}

impl<'a> ContextQuery<'a> {
    /// `None` when the data is not what the protocol says.
    pub fn decode(mut data: &'a [u8]) -> Option<Self> {
        let export = string(&mut data)?;
        let count = data.try_get_u32().ok()?;
        // Each name takes four bytes at least, so a count that lies ends at the end of the data.
        let mut names = Vec::new();
        for _ in 0..count {
            names.push(string(&mut data)?);
        }
        data.is_empty().then_some(Self { export, names })
    }
}

/// Listing takes no name as "all" and a bare namespace as "all in it"; setting takes only exact names.
pub(crate) fn allocation_is_asked_for(query: &ContextQuery<'_>, setting: bool) -> bool {
    let exact = query.names.contains(&ALLOCATION_CONTEXT.as_bytes());
    let listed = !setting && (query.names.is_empty() || query.names.contains(&b"base:".as_slice()));
    exact || listed
}

fn string<'a>(data: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = data.try_get_u32().ok()? as usize;
    let (string, rest) = data.split_at_checked(len)?;
    *data = rest;
    (len <= MAX_STRING).then_some(string)
}

#[cfg(test)]
mod tests {
    use bytes::BufMut;

    use super::*;

    fn encode(export: &str, names: &[&str]) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u32(export.len() as u32);
        data.put_slice(export.as_bytes());
        data.put_u32(names.len() as u32);
        for name in names {
            data.put_u32(name.len() as u32);
            data.put_slice(name.as_bytes());
        }
        data
    }

    #[test]
    fn which_queries_mean_base_allocation() {
        for (names, listing, setting) in [
            (&[][..], true, false),
            (&["base:"], true, false),
            (&["base:allocation"], true, true),
            (&["qemu:dirty-bitmap:x", "base:allocation"], true, true),
            (&["base:other"], false, false),
            (&["base:allocation-depth"], false, false),
        ] {
            let data = encode("disk", names);
            let query = ContextQuery::decode(&data).unwrap();
            assert_eq!(allocation_is_asked_for(&query, false), listing, "listing {names:?}");
            assert_eq!(allocation_is_asked_for(&query, true), setting, "setting {names:?}");
        }
    }

    #[test]
    fn every_truncation_is_malformed() {
        let data = encode("disk", &["base:allocation", "base:"]);
        assert!(ContextQuery::decode(&data).is_some());
        for len in 0..data.len() {
            assert_eq!(ContextQuery::decode(&data[..len]), None, "first {len} bytes");
        }
    }

    #[test]
    fn a_count_that_lies_costs_nothing() {
        let mut data = encode("", &[]);
        data[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(ContextQuery::decode(&data), None);
    }
}
