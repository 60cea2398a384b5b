//! The volume that is overwritten. Leaves alone what reads as zero already and is to be zero.

use anyhow::{Context, bail};
use bytes::Bytes;
use granary_block::geometry::Range;
use granary_block::size;
use granary_frontend::nbd::{NbdClient, NbdUrl};
use granary_frontend::{Volume, are_zeroes};

/// How much of what should be zero is looked at in one read.
const PIECE: u64 = 1 << 20;

/// How much is asked about before anything is done about it, so that a target in fragments cannot fill the memory.
const SPAN: u64 = 1 << 30;

#[derive(Clone)]
pub struct Target {
    volume: NbdClient,
}

impl Target {
    pub async fn connect(url: &NbdUrl) -> anyhow::Result<Self> {
        let volume = NbdClient::connect(url, None).await?;
        if volume.is_read_only() {
            bail!("{url} can only be read: it is no target for a clone");
        }
        Ok(Self { volume })
    }

    pub fn size(&self) -> u64 {
        *self.volume.size().borrow()
    }

    pub async fn write(&self, offset: u64, data: Bytes) -> anyhow::Result<()> {
        let len = data.len() as u64;
        let written = self.volume.write(offset, data, false).await;
        written.with_context(|| format!("cannot write {} at byte {offset} of the target", size::show(len)))
    }

    /// Makes a range zero. Answers how much of it already was a hole, and was left alone.
    pub async fn zero(&self, range: Range) -> anyhow::Result<u64> {
        let mut skipped = 0;
        for span in spans(range) {
            for (part, hole) in self.holes(span).await? {
                if hole {
                    skipped += part.len;
                    continue;
                }
                let zeroed = self.volume.zero(part.offset, part.len, false, false).await;
                zeroed.with_context(|| {
                    format!("cannot zero {} at byte {} of the target", size::show(part.len), part.offset)
                })?;
            }
        }
        Ok(skipped)
    }

    pub async fn flush(&self) -> anyhow::Result<()> {
        Ok(self.volume.flush().await?)
    }

    pub async fn expect(&self, offset: u64, expected: &[u8]) -> anyhow::Result<()> {
        let found = self.read(offset, expected.len() as u64).await?;
        match found.iter().zip(expected).position(|(found, expected)| found != expected) {
            None => Ok(()),
            Some(at) => bail!("byte {} of the target is not what the snapshot has", offset + at as u64),
        }
    }

    pub async fn expect_zeroes(&self, range: Range) -> anyhow::Result<()> {
        for span in spans(range) {
            for (part, _) in self.holes(span).await?.into_iter().filter(|(_, hole)| !hole) {
                let mut at = part.offset;
                while at < part.end() {
                    let len = PIECE.min(part.end() - at);
                    if !are_zeroes(&self.read(at, len).await?) {
                        bail!(
                            "{} at byte {at} of the target are not zero, as in the snapshot",
                            size::show(len)
                        );
                    }
                    at += len;
                }
            }
        }
        Ok(())
    }

    async fn read(&self, offset: u64, len: u64) -> anyhow::Result<Bytes> {
        let read = self.volume.read(offset, len as u32).await;
        read.with_context(|| format!("cannot read {} at byte {offset} of the target", size::show(len)))
    }

    /// The parts of a range, and whether they are known to read as zero. A server that cannot tell knows of none.
    async fn holes(&self, range: Range) -> anyhow::Result<Vec<(Range, bool)>> {
        let mut found: Vec<(Range, bool)> = Vec::new();
        let mut at = range.offset;
        while at < range.end() {
            let runs = self.volume.allocation(at, range.end() - at).await;
            let runs = runs.with_context(|| format!("cannot ask what is at byte {at} of the target"))?;
            let before = at;
            for run in runs {
                match found.last_mut() {
                    Some((last, hole)) if *hole == run.hole => last.len += run.len,
                    _ => found.push((Range::new(at, run.len), run.hole)),
                }
                at += run.len;
            }
            if at == before {
                bail!("the target does not say what is at byte {at}");
            }
        }
        Ok(found)
    }
}

fn spans(range: Range) -> impl Iterator<Item = Range> {
    let starts = (range.offset..range.end()).step_by(SPAN as usize);
    starts.map(move |at| Range::new(at, SPAN.min(range.end() - at)))
}
