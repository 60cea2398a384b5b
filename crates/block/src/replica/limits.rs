//! How much one request may ask for and one answer may say, judged before anything is kept for it.
//! Bounds only; whether a range or a tree makes sense is the store's to say.

use crate::geometry::{BLOCK, INTENT_REGION, MAX_IO, Range};
use crate::store::StoreError;
use crate::wire::message::{Failure, FailureKind, Layer, Membership, Regions, Run, SnapshotSpec};

/// Runs in one answer or one request: a megabyte of JSON.
pub const MAX_RUNS: usize = 16 << 10;

/// How far an answer about runs looks at a time, so that a volume in fragments cannot fill the memory.
const STEP: u64 = 64 << 20;

/// Steps one answer takes: a request over a wide, empty volume ends soon too.
const MAX_STEPS: usize = 16 << 10;

/// How much content one request may have digested: a second or so of work.
const MAX_DIGESTED: u64 = 1 << 30;

/// Layers a peer may describe. Stores allow fewer.
const MAX_LAYERS: usize = 4096;

/// Name, labels and all of one snapshot. A full chain of them still fits a message.
const MAX_SNAPSHOT: usize = 8 << 10;

const MAX_MEMBERS: usize = 64;

type Answer<T = ()> = Result<T, Failure>;

fn invalid(message: String) -> Failure {
    Failure { kind: FailureKind::Invalid, message }
}

/// The bytes of a request for content.
pub fn io(range: Range, size: u64) -> Answer<usize> {
    within(range, size)?;
    if range.len > u64::from(MAX_IO) {
        return Err(invalid(format!("{} bytes are more than the {MAX_IO} of one request", range.len)));
    }
    Ok(range.len as usize)
}

fn within(range: Range, size: u64) -> Answer {
    if range.fits(size) { Ok(()) } else { Err(StoreError::OutOfRange { range, size }.into()) }
}

pub fn digests(range: Range, chunk: u64, size: u64) -> Answer {
    within(range, size)?;
    if chunk == 0 || !chunk.is_multiple_of(BLOCK) || chunk > u64::from(MAX_IO) {
        return Err(invalid(format!("a chunk of {chunk} bytes is not whole blocks up to {MAX_IO} bytes")));
    }
    if range.len > MAX_DIGESTED || range.len.div_ceil(chunk) * 16 > u64::from(MAX_IO) {
        return Err(invalid(format!(
            "{} bytes in chunks of {chunk} are too many digests at once",
            range.len
        )));
    }
    Ok(())
}

pub fn runs(runs: &[Run]) -> Answer {
    if runs.len() > MAX_RUNS {
        return Err(invalid(format!("{} runs are more than the {MAX_RUNS} of one request", runs.len())));
    }
    Ok(())
}

/// Regions of the volume, each run of them within it.
pub fn regions(regions: &[Regions], size: u64) -> Answer {
    let known = size.div_ceil(INTENT_REGION);
    let within = |run: &Regions| run.1 > 0 && run.0.checked_add(run.1).is_some_and(|end| end <= known);
    match regions.iter().find(|run| !within(run)) {
        Some(Regions(first, count)) => {
            Err(invalid(format!("regions {first}+{count} are not among the volume's {known}")))
        }
        None => Ok(()),
    }
}

pub fn snapshot(snapshot: &SnapshotSpec) -> Answer {
    let labels = snapshot.labels.iter().map(|(name, value)| name.len() + value.len() + 8).sum::<usize>();
    if snapshot.name.len() + labels > MAX_SNAPSHOT {
        return Err(invalid(format!("name and labels of a snapshot may have {MAX_SNAPSHOT} bytes together")));
    }
    Ok(())
}

pub fn layers(layers: &[Layer]) -> Answer {
    if layers.len() > MAX_LAYERS {
        return Err(invalid(format!("{} layers are more than a replica takes", layers.len())));
    }
    layers.iter().filter_map(|layer| layer.snapshot.as_ref()).try_for_each(snapshot)
}

pub fn membership(record: &Membership) -> Answer {
    let long = record.members.iter().any(|member| member.address.len() > 1024);
    if long || record.members.len() > MAX_MEMBERS || record.away.len() > MAX_MEMBERS {
        return Err(invalid(format!(
            "a record names at most {MAX_MEMBERS} replicas, with addresses of 1024 bytes"
        )));
    }
    Ok(())
}

/// Runs of a wide range: asked for step by step, joined where they touch, and cut off when they are many. The asker
/// goes on where the last one ends.
pub fn in_steps(
    range: Range,
    size: u64,
    ask: impl Fn(Range) -> Result<Vec<Run>, StoreError>,
) -> Answer<Vec<Run>> {
    within(range, size)?;
    let mut found: Vec<Run> = Vec::new();
    let mut at = range.offset;
    for _ in 0..MAX_STEPS {
        if at == range.end() || found.len() >= MAX_RUNS {
            break;
        }
        let step = Range::new(at, STEP.min(range.end() - at));
        for run in ask(step)? {
            match found.last_mut() {
                Some(last) if last.kind == run.kind && last.range.end() == run.range.offset => {
                    last.range.len += run.range.len;
                }
                _ => found.push(run),
            }
        }
        at = step.end();
    }
    found.truncate(MAX_RUNS);
    Ok(found)
}

/// Too many runs of marks for one message become fewer, larger ones: marks too many cost a comparison, marks too few
/// would cost data.
pub fn coarsen(marked: &mut Vec<Regions>) {
    let mut gap = 1;
    while marked.len() > MAX_RUNS {
        let mut joined: Vec<Regions> = Vec::new();
        for &Regions(first, count) in marked.iter() {
            match joined.last_mut() {
                Some(last) if first - (last.0 + last.1) <= gap => last.1 = first + count - last.0,
                _ => joined.push(Regions(first, count)),
            }
        }
        *marked = joined;
        gap *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::message::RunKind;

    #[test]
    fn a_fragmented_volume_is_answered_in_parts_that_join_up() {
        // Every second block holds data: far more runs than one answer may have.
        let size = 1 << 30;
        let ask = |range: Range| -> Result<Vec<Run>, StoreError> {
            let kind = |block: u64| if block.is_multiple_of(2) { RunKind::Data } else { RunKind::Absent };
            Ok(range
                .blocks()
                .map(|block| Run { range: Range::of_blocks(block..block + 1), kind: kind(block) })
                .collect())
        };
        let (mut at, mut answers) = (0, 0);
        while at < size {
            let runs = in_steps(Range::new(at, size - at), size, ask).unwrap();
            assert!(!runs.is_empty() && runs.len() <= MAX_RUNS);
            assert_eq!(runs[0].range.offset, at);
            at = runs[runs.len() - 1].range.end();
            answers += 1;
        }
        assert_eq!(answers, size / BLOCK / MAX_RUNS as u64);
    }

    #[test]
    fn an_empty_volume_is_one_run() {
        let size = 1 << 40;
        let ask = |range| Ok(vec![Run { range, kind: RunKind::Absent }]);
        let whole = Range::new(0, size);
        assert_eq!(in_steps(whole, size, ask).unwrap(), vec![Run { range: whole, kind: RunKind::Absent }]);
    }

    #[test]
    fn coarser_marks_cover_the_finer_ones() {
        let fine: Vec<_> = (0..MAX_RUNS as u64 * 3).map(|n| Regions(n * 5, 2)).collect();
        let mut coarse = fine.clone();
        coarsen(&mut coarse);
        assert!(coarse.len() <= MAX_RUNS);
        for Regions(first, count) in fine {
            let covered = coarse.iter().any(|run| run.0 <= first && first + count <= run.0 + run.1);
            assert!(covered, "{first}+{count}");
        }
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let size = 1 << 40;
        assert!(io(Range::new(0, u64::from(MAX_IO)), size).is_ok());
        assert!(io(Range::new(0, u64::from(MAX_IO) + BLOCK), size).is_err());
        assert!(io(Range::new(size, BLOCK), size).is_err());
        for (len, chunk, fine) in [
            (1 << 20, BLOCK, true),
            (1 << 30, 1 << 20, true),
            (1 << 30, BLOCK, false),
            (BLOCK, 0, false),
            (BLOCK, 100, false),
        ] {
            assert_eq!(digests(Range::new(0, len), chunk, size).is_ok(), fine, "{len} in {chunk}");
        }
        for (first, count, fine) in
            [(0, 1, true), (0, 65_536, true), (65_535, 2, false), (u64::MAX, 2, false), (0, 0, false)]
        {
            assert_eq!(regions(&[Regions(first, count)], size).is_ok(), fine, "{first}+{count}");
        }
    }
}
