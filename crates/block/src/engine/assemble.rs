//! Cuts a guest's request into aligned parts and puts what was read together again. Pure.

use bytes::{Bytes, BytesMut};

use crate::engine::table::Work;
use crate::geometry::{BLOCK, MAX_IO, Range};

/// Zeroes for the edges of unaligned zero requests.
static ZEROES: [u8; BLOCK as usize] = [0; BLOCK as usize];

const fn floor(offset: u64) -> u64 {
    offset / BLOCK * BLOCK
}

const fn ceil(offset: u64) -> u64 {
    offset.div_ceil(BLOCK) * BLOCK
}

/// Aligned ranges of at most [`MAX_IO`] that cover the bytes.
pub fn covering(offset: u64, len: u64, mut each: impl FnMut(Range)) {
    let (mut at, end) = (floor(offset), ceil(offset + len));
    while at < end {
        let piece = (end - at).min(u64::from(MAX_IO));
        each(Range::new(at, piece));
        at += piece;
    }
}

/// A write as whole blocks where it fills them, and as merges at its edges where it does not.
pub fn write_parts(offset: u64, data: &Bytes, durable: bool, mut each: impl FnMut(Range, Work)) {
    cut(offset, data.len() as u64, u64::from(MAX_IO), |range, from, to| {
        let piece = data.slice((from - offset) as usize..(to - offset) as usize);
        let whole = from == range.offset && to == range.end();
        let work = if whole {
            Work::Write { data: piece, durable }
        } else {
            Work::Merge { at: from - range.offset, data: piece, durable }
        };
        each(range, work);
    });
}

pub fn zero_parts(offset: u64, len: u64, allocate: bool, durable: bool, mut each: impl FnMut(Range, Work)) {
    cut(offset, len, u64::MAX, |range, from, to| {
        let whole = from == range.offset && to == range.end();
        let work = if whole {
            Work::Zero { allocate, durable }
        } else {
            let data = Bytes::from_static(&ZEROES).slice(..(to - from) as usize);
            Work::Merge { at: from - range.offset, data, durable }
        };
        each(range, work);
    });
}

/// `each(range, from, to)`: the bytes `from..to` within the aligned `range`; edges that do not fill their block stand
/// alone.
fn cut(offset: u64, len: u64, most: u64, mut each: impl FnMut(Range, u64, u64)) {
    let end = offset + len;
    let mut at = offset;
    while at < end {
        let start = floor(at);
        if at > start || end < start + BLOCK {
            let to = end.min(start + BLOCK);
            each(Range::new(start, BLOCK), at, to);
            at = to;
        } else {
            let to = floor(end).min(at.saturating_add(most));
            each(Range::new(at, to - at), at, to);
            at = to;
        }
    }
}

/// The bytes of `offset..offset+len` from aligned pieces that cover it.
pub fn join(offset: u64, len: u64, pieces: &mut [(u64, Bytes)]) -> Bytes {
    let clip = |(at, bytes): &(u64, Bytes)| {
        let from = offset.saturating_sub(*at) as usize;
        let to = ((offset + len).saturating_sub(*at) as usize).min(bytes.len());
        bytes.slice(from.min(to)..to)
    };
    if let [piece] = pieces {
        return clip(piece);
    }
    pieces.sort_unstable_by_key(|(at, _)| *at);
    let mut whole = BytesMut::with_capacity(len as usize);
    for piece in pieces.iter() {
        whole.extend_from_slice(&clip(piece));
    }
    whole.freeze()
}

/// The block with some of its bytes replaced.
pub fn merge(block: &[u8], at: u64, data: &[u8]) -> Bytes {
    let mut whole = BytesMut::from(block);
    whole[at as usize..at as usize + data.len()].copy_from_slice(data);
    whole.freeze()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::*;

    proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]
        #[test]
        fn parts_of_a_write_are_the_write(offset in 0u64..20_000, data in proptest::collection::vec(any::<u8>(), 1..30_000)) {
            let data = Bytes::from(data);
            let mut seen = vec![None; 60_000];
            write_parts(offset, &data, false, |range, work| {
                assert!(range.is_valid());
                let (at, bytes) = match work {
                    Work::Write { data, .. } => { assert_eq!(data.len() as u64, range.len); (range.offset, data) }
                    Work::Merge { at, data, .. } => { assert_eq!(range.len, BLOCK); (range.offset + at, data) }
                    other => panic!("{other:?}"),
                };
                for (n, byte) in bytes.iter().enumerate() {
                    assert!(seen[at as usize + n].replace(*byte).is_none(), "written once");
                }
            });
            let end = offset as usize + data.len();
            for (at, byte) in seen.iter().enumerate() {
                let expected = (offset as usize <= at && at < end).then(|| data[at - offset as usize]);
                assert_eq!(*byte, expected);
            }
        }

        #[test]
        fn pieces_of_a_read_are_the_read(offset in 0u64..1_500_000, len in 1u64..1_500_000) {
            let byte = |at: u64| (at % 251) as u8;
            let mut pieces = Vec::new();
            covering(offset, len, |range| {
                assert!(range.is_valid() && range.len <= u64::from(MAX_IO));
                pieces.push((range.offset, (range.offset..range.end()).map(byte).collect::<Bytes>()));
            });
            pieces.reverse();
            let joined = join(offset, len, &mut pieces);
            assert!(joined.iter().copied().eq((offset..offset + len).map(byte)));
        }
    }

    #[test]
    fn a_large_zero_is_one_part_and_its_edges() {
        let mut parts = Vec::new();
        zero_parts(100, 1 << 40, false, false, |range, work| {
            parts.push((range, matches!(work, Work::Zero { .. })));
        });
        assert_eq!(parts.len(), 3);
        assert_eq!(parts[1], (Range::new(BLOCK, (1 << 40) - BLOCK), true));
    }
}
