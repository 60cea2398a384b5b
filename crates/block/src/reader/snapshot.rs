//! The snapshot as its readers see it: how large it is, what it stands on, and its content.

use std::ops::Range as Span;

use bytes::{Bytes, BytesMut};

use super::chunk::Question;
use super::error::ReaderError;
use super::exchange::Exchange;
use super::source::Source;
use super::walk::{PIPELINE, Walk};
use crate::geometry::{MAX_IO, Range};
use crate::ids::LayerId;
use crate::wire::message::{Layer, Run, RunKind, SnapshotSpec};

/// One snapshot of one volume, read from whichever of its replicas is there.
pub struct SnapshotReader {
    pub(super) exchange: Exchange,
}

impl SnapshotReader {
    /// Finds the snapshot on the replicas named. Needs one that has it and is not being rebuilt.
    pub async fn open(source: Source, snapshot: &str) -> Result<Self, ReaderError> {
        Ok(Self { exchange: Exchange::begin(source, snapshot).await? })
    }

    /// The volume's size when the snapshot was taken.
    pub fn size(&self) -> u64 {
        self.exchange.standing.size
    }

    /// The same on every replica, and never given to another snapshot.
    pub fn layer(&self) -> LayerId {
        self.exchange.standing.layer
    }

    pub fn spec(&self) -> &SnapshotSpec {
        &self.exchange.standing.spec
    }

    /// The layers it stands on, nearest first: older snapshots, removed ones that are not folded yet, a backing image.
    pub fn below(&self) -> &[Layer] {
        &self.exchange.standing.below
    }

    /// The older snapshot of that name, if this one stands on it: what changed since can be asked for.
    pub fn base(&self, snapshot: &str) -> Option<LayerId> {
        let named = |layer: &&Layer| layer.snapshot.as_ref().is_some_and(|it| it.name == snapshot);
        self.below().iter().filter(|layer| !layer.removed).find(named).map(|layer| layer.id)
    }

    /// Which parts of a range hold data or say zero; with `since`, only what changed since that layer, and perhaps a
    /// little more. Begins where the range does, and ends early when the answer grows long.
    pub async fn runs(&mut self, since: Option<LayerId>, range: Range) -> Result<Vec<Run>, ReaderError> {
        self.check(since, range)?;
        let id = self.exchange.ask(Question { since, range, content: false });
        Ok(self.exchange.answer(id).await?.runs)
    }

    /// The content of a range. What no layer holds is zero.
    pub async fn read(&mut self, range: Range) -> Result<Bytes, ReaderError> {
        self.check(None, range)?;
        let mut content = BytesMut::with_capacity(range.len as usize);
        for few in pieces(range.offset..range.end(), PIPELINE as u64 * u64::from(MAX_IO)) {
            let asked: Vec<u64> = pieces(few.offset..few.end(), u64::from(MAX_IO))
                .map(|range| self.exchange.ask(Question { since: None, range, content: true }))
                .collect();
            for id in asked {
                for (run, data) in self.exchange.answer(id).await?.parts() {
                    match run.kind {
                        RunKind::Data => content.extend_from_slice(&data),
                        RunKind::Zero | RunKind::Absent => {
                            content.resize(content.len() + run.range.len as usize, 0);
                        }
                    }
                }
            }
        }
        Ok(content.freeze())
    }

    /// All of a range from its beginning to its end, read ahead. With `since` only what changed has content; the rest
    /// is [`RunKind::Absent`].
    pub fn walk(&mut self, since: Option<LayerId>, range: Range) -> Result<Walk<'_>, ReaderError> {
        self.check(since, range)?;
        Ok(Walk::new(&mut self.exchange, since, range))
    }

    /// The whole snapshot.
    pub fn all(&self) -> Range {
        Range::new(0, self.size())
    }

    fn check(&mut self, since: Option<LayerId>, range: Range) -> Result<(), ReaderError> {
        // What an earlier question was dropped over is of no use to this one.
        self.exchange.forget();
        if let Some(since) = since.filter(|since| !self.exchange.standing.stands_on(*since)) {
            return Err(ReaderError::NotBelow { snapshot: self.exchange.snapshot().to_owned(), since });
        }
        if range.fits(self.size()) {
            Ok(())
        } else {
            Err(ReaderError::OutOfRange { range, size: self.size() })
        }
    }
}

fn pieces(span: Span<u64>, most: u64) -> impl Iterator<Item = Range> {
    let end = span.end;
    span.step_by(most as usize).map(move |at| Range::new(at, most.min(end - at)))
}
