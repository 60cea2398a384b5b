//! Digests of the volume's content, chunk by chunk, for finding where two replicas differ.

use bytes::Bytes;

use super::error::{Result, StoreError};
use super::io::read_chain;
use super::state::Store;
use super::view::locate;
use crate::geometry::{BLOCK, MAX_IO, Range};
use crate::wire::message::RunKind;

/// Enough to tell chunks apart, half of what the hash gives.
const DIGEST: usize = 16;

impl Store {
    /// 16 bytes for each chunk of the range: equal when the content is, whatever layer holds it and whether zeroes
    /// are stored or a hole.
    pub fn digests(&self, range: Range, chunk: u64) -> Result<Bytes> {
        if chunk == 0 || !chunk.is_multiple_of(BLOCK) || chunk > u64::from(MAX_IO) {
            return Err(StoreError::Invalid(format!(
                "a chunk of {chunk} bytes is not whole blocks, or too large"
            )));
        }
        let view = self.view.load_full();
        view.check(range)?;
        let mut buffer = vec![0; chunk.min(range.len) as usize];
        let empty = short(&buffer);
        let mut digests = Vec::with_capacity(range.len.div_ceil(chunk) as usize * DIGEST);
        let mut at = range.offset;
        while at < range.end() {
            let part = Range::new(at, chunk.min(range.end() - at));
            let (found, end) = locate(&view.chain, part.blocks());
            let is_hole = RunKind::of(&found) != RunKind::Data && end == part.blocks().end;
            if is_hole && part.len == buffer.len() as u64 {
                digests.extend_from_slice(&empty);
            } else {
                let bytes = &mut buffer[..part.len as usize];
                read_chain(&view.chain, part, bytes, |layer, offset, into| {
                    layer.data.read_at(offset, into).map(|()| true)
                })?;
                digests.extend_from_slice(&short(bytes));
            }
            at = part.end();
        }
        self.usable()?;
        Ok(digests.into())
    }
}

fn short(bytes: &[u8]) -> [u8; DIGEST] {
    let mut short = [0; DIGEST];
    short.copy_from_slice(&blake3::hash(bytes).as_bytes()[..DIGEST]);
    short
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::disk::simulated::Simulated;
    use crate::ids::LayerId;
    use crate::store::CreateOptions;
    use crate::wire::message::SnapshotSpec;

    fn store() -> Store {
        Store::create(Arc::new(Simulated::new()), CreateOptions::new(1 << 20)).unwrap()
    }

    #[test]
    fn the_same_content_has_the_same_digests_however_it_is_kept() {
        let (one, other) = (store(), store());
        let whole = Range::new(0, 1 << 20);
        assert_eq!(one.digests(whole, 64 << 10).unwrap().len(), 16 * DIGEST);
        one.write(0, &[7; 2 * BLOCK as usize]).unwrap();
        one.write(256 << 10, &[0; BLOCK as usize]).unwrap();
        other.write(0, &[7; BLOCK as usize]).unwrap();
        let snapshot = SnapshotSpec {
            name: "s".into(),
            created: jiff::Timestamp::UNIX_EPOCH,
            user_created: true,
            labels: Default::default(),
        };
        other.snapshot(snapshot, LayerId::random()).unwrap();
        assert_ne!(one.digests(whole, 64 << 10).unwrap(), other.digests(whole, 64 << 10).unwrap());
        other.write(BLOCK, &[7; BLOCK as usize]).unwrap();
        assert_eq!(one.digests(whole, 64 << 10).unwrap(), other.digests(whole, 64 << 10).unwrap());
        // The last chunk of a range may be shorter than the others.
        let odd = Range::new(0, 5 * BLOCK);
        assert_eq!(one.digests(odd, 4 * BLOCK).unwrap(), other.digests(odd, 4 * BLOCK).unwrap());
    }
}
