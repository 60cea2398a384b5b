//! From the snapshot to the target: reading is ahead of writing, and both have several requests in flight.

use anyhow::Context;
use granary_block::geometry::Range;
use granary_block::reader::{Chunk, SnapshotReader};
use granary_block::wire::message::RunKind;
use tokio::task::JoinSet;

use super::progress::Progress;
use super::target::Target;

/// Requests to the target in flight; with those for reading, a few dozen megabytes at most.
const IN_FLIGHT: usize = 16;

/// In bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Content that came from the replicas.
    pub read: u64,
    pub written: u64,
    /// Made zero, because the target was not known to be.
    pub zeroed: u64,
    /// To be zero, and left alone because it was.
    pub skipped: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.read += other.read;
        self.written += other.written;
        self.zeroed += other.zeroed;
        self.skipped += other.skipped;
    }
}

/// Overwrites all of the target; what lies beyond the snapshot's end becomes zero.
pub async fn run(
    reader: &mut SnapshotReader,
    target: &Target,
    progress: &Progress,
) -> anyhow::Result<Counts> {
    let mut counts = Counts::default();
    let mut writing = JoinSet::new();
    let (size, all) = (reader.size(), reader.all());
    let mut walk = reader.walk(None, all)?;
    let mut note = |written: Result<anyhow::Result<Counts>, tokio::task::JoinError>| {
        let written = written.context("a write to the target ended without an answer")??;
        progress.add(written.read + written.zeroed + written.skipped);
        counts.add(written);
        anyhow::Ok(())
    };
    let mut more = true;
    while more || !writing.is_empty() {
        tokio::select! {
            chunk = walk.next(), if more && writing.len() < IN_FLIGHT => match chunk? {
                Some(chunk) => {
                    writing.spawn_local(write(target.clone(), chunk));
                }
                None => {
                    more = false;
                    if target.size() > size {
                        let beyond = Range::new(size, target.size() - size);
                        let target = target.clone();
                        writing.spawn_local(async move { zero(&target, beyond).await });
                    }
                }
            },
            Some(written) = writing.join_next() => note(written)?,
        }
    }
    Ok(counts)
}

async fn write(target: Target, chunk: Chunk) -> anyhow::Result<Counts> {
    let mut counts = Counts::default();
    for (run, data) in chunk.parts() {
        match run.kind {
            RunKind::Data => {
                let len = run.range.len;
                target.write(run.range.offset, data).await?;
                counts.add(Counts { read: len, written: len, ..Counts::default() });
            }
            RunKind::Zero | RunKind::Absent => counts.add(zero(&target, run.range).await?),
        }
    }
    Ok(counts)
}

async fn zero(target: &Target, range: Range) -> anyhow::Result<Counts> {
    let skipped = target.zero(range).await?;
    Ok(Counts { skipped, zeroed: range.len - skipped, ..Counts::default() })
}
