//! CRC-32C, and how to compute it once for what goes to several replicas.

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};

pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// The checksum of a body whose meta and payload lie apart.
pub fn body_crc(meta: &[u8], payload: &[u8]) -> u32 {
    if meta.is_empty() {
        return crc32c(payload);
    }
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(meta);
    digest.update(payload);
    digest.finalize() as u32
}

/// Remembers the checksum of one payload. It keeps the payload, so that no other can come to lie at its address.
#[derive(Default)]
pub struct Seal {
    last: Option<(Bytes, u32)>,
}

impl Seal {
    pub fn of(&mut self, payload: &Bytes) -> u32 {
        if let Some((last, crc)) = &self.last
            && (last.as_ptr(), last.len()) == (payload.as_ptr(), payload.len())
        {
            return *crc;
        }
        let crc = crc32c(payload);
        self.last = Some((payload.clone(), crc));
        crc
    }

    pub fn forget(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_is_the_checksum_that_everybody_means_by_that_name() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(b""), 0);
    }

    proptest! {
        #[test]
        fn apart_or_together_is_the_same(meta: Vec<u8>, payload: Vec<u8>) {
            prop_assert_eq!(body_crc(&meta, &payload), crc32c(&[meta, payload].concat()));
        }

        #[test]
        fn a_seal_never_mistakes_one_payload_for_another(
            whole in proptest::collection::vec(any::<u8>(), 1..200),
            cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..20),
        ) {
            let whole = Bytes::from(whole);
            let mut seal = Seal::default();
            for (a, b) in cuts {
                let (a, b) = (a.index(whole.len()), b.index(whole.len()));
                let part = whole.slice(a.min(b)..a.max(b));
                prop_assert_eq!(seal.of(&part), crc32c(&part));
            }
        }
    }
}
