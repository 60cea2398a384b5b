//! What of a layer has to be copied: compares what source and target say they hold, run by run. Pure.

use crate::geometry::{MAX_IO, Range};
use crate::wire::message::{Run, RunKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Only one side has something there: no need to look.
    Copy(Range),
    /// Both have something: digests tell whether it is the same.
    Compare(Range),
}

/// Digests of this much are asked for at once.
const COMPARE: u64 = 8 << 20;

/// Walks both lists, which begin at the same offset, as far as both go. Returns where that is.
pub fn pieces(source: &[Run], target: &[Run], mut each: impl FnMut(Piece)) -> u64 {
    let (mut s, mut t) = (source.iter().copied(), target.iter().copied());
    let (mut left, mut right) = (s.next(), t.next());
    let mut at = left.map_or(0, |run| run.range.offset);
    let mut pending: Option<Piece> = None;
    while let (Some(a), Some(b)) = (left, right) {
        let end = a.range.end().min(b.range.end());
        if end > at {
            let range = Range::new(at, end - at);
            let next = match (a.kind, b.kind) {
                (RunKind::Absent, RunKind::Absent) => None,
                (RunKind::Absent, _) | (_, RunKind::Absent) => Some(Piece::Copy(range)),
                _ => Some(Piece::Compare(range)),
            };
            match (&mut pending, next) {
                (Some(Piece::Copy(before)), Some(Piece::Copy(now))) if before.end() == now.offset => {
                    before.len += now.len;
                }
                (Some(Piece::Compare(before)), Some(Piece::Compare(now))) if before.end() == now.offset => {
                    before.len += now.len;
                }
                (_, next) => {
                    if let Some(piece) = std::mem::replace(&mut pending, next) {
                        split(piece, &mut each);
                    }
                }
            }
        }
        at = end;
        if a.range.end() == end {
            left = s.next();
        }
        if b.range.end() == end {
            right = t.next();
        }
    }
    if let Some(piece) = pending {
        split(piece, &mut each);
    }
    at
}

fn split(piece: Piece, each: &mut impl FnMut(Piece)) {
    let (range, most) = match piece {
        Piece::Copy(range) => (range, u64::from(MAX_IO)),
        Piece::Compare(range) => (range, COMPARE),
    };
    let mut at = range.offset;
    while at < range.end() {
        let len = most.min(range.end() - at);
        each(match piece {
            Piece::Copy(_) => Piece::Copy(Range::new(at, len)),
            Piece::Compare(_) => Piece::Compare(Range::new(at, len)),
        });
        at += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::BLOCK;

    fn runs(list: &[(u64, RunKind)]) -> Vec<Run> {
        let mut at = 0;
        list.iter()
            .map(|(blocks, kind)| {
                let range = Range::new(at * BLOCK, blocks * BLOCK);
                at += blocks;
                Run { range, kind: *kind }
            })
            .collect()
    }

    #[test]
    fn only_what_one_side_has_is_copied_unseen() {
        use RunKind::{Absent, Data, Zero};
        let source = runs(&[(2, Data), (2, Absent), (2, Zero), (4, Absent)]);
        let target = runs(&[(1, Absent), (3, Data), (1, Absent), (2, Zero)]);
        let mut found = Vec::new();
        let end = pieces(&source, &target, |piece| found.push(piece));
        let range = |first, count| Range::new(first * BLOCK, count * BLOCK);
        assert_eq!(
            found,
            [
                Piece::Copy(range(0, 1)),
                Piece::Compare(range(1, 1)),
                Piece::Copy(range(2, 3)),
                Piece::Compare(range(5, 1)),
                Piece::Copy(range(6, 1)),
            ]
        );
        assert_eq!(end, 7 * BLOCK, "as far as both lists go");
    }

    #[test]
    fn long_runs_are_cut_to_what_one_request_may_carry() {
        let blocks = 3 * u64::from(MAX_IO) / BLOCK + 1;
        let source = runs(&[(blocks, RunKind::Data)]);
        let target = runs(&[(blocks, RunKind::Absent)]);
        let mut found = Vec::new();
        pieces(&source, &target, |piece| found.push(piece));
        assert_eq!(found.len(), 4);
    }
}
