//! Reads snapshot and target once more, and compares them byte by byte.

use anyhow::Context;
use granary_block::geometry::Range;
use granary_block::reader::{Chunk, SnapshotReader};
use granary_block::wire::message::RunKind;
use tokio::task::JoinSet;

use super::progress::Progress;
use super::target::Target;

const IN_FLIGHT: usize = 8;

pub async fn run(reader: &mut SnapshotReader, target: &Target, progress: &Progress) -> anyhow::Result<()> {
    let (size, all) = (reader.size(), reader.all());
    let mut comparing = JoinSet::new();
    let mut walk = reader.walk(None, all)?;
    while let Some(chunk) = walk.next().await? {
        if comparing.len() >= IN_FLIGHT {
            note(comparing.join_next().await, progress)?;
        }
        comparing.spawn_local(compare(target.clone(), chunk));
    }
    while !comparing.is_empty() {
        note(comparing.join_next().await, progress)?;
    }
    if target.size() > size {
        target.expect_zeroes(Range::new(size, target.size() - size)).await?;
        progress.add(target.size() - size);
    }
    Ok(())
}

type Compared = Result<anyhow::Result<u64>, tokio::task::JoinError>;

fn note(compared: Option<Compared>, progress: &Progress) -> anyhow::Result<()> {
    if let Some(compared) = compared {
        progress.add(compared.context("a comparison ended without an answer")??);
    }
    Ok(())
}

async fn compare(target: Target, chunk: Chunk) -> anyhow::Result<u64> {
    let mut compared = 0;
    for (run, data) in chunk.parts() {
        match run.kind {
            RunKind::Data => target.expect(run.range.offset, &data).await?,
            RunKind::Zero | RunKind::Absent => target.expect_zeroes(run.range).await?,
        }
        compared += run.range.len;
    }
    Ok(compared)
}
