//! A snapshot from beginning to end: finds out where content is, asks for it ahead of the reader, and gives it in
//! order. What holds no data costs one question for a terabyte of it.

use std::collections::VecDeque;

use bytes::Bytes;

use super::chunk::{Chunk, Question};
use super::error::ReaderError;
use super::exchange::Exchange;
use crate::geometry::{MAX_IO, Range};
use crate::ids::LayerId;
use crate::wire::message::{Run, RunKind};

/// Questions for content in flight, each for a megabyte at most: enough for a network of some milliseconds, little
/// enough to leave a replica's disk to its engine.
pub(super) const PIPELINE: usize = 8;

const WINDOW: u64 = MAX_IO as u64;

/// Part of a snapshot on its way. Dropping it drops what is still to come.
pub struct Walk<'a> {
    exchange: &'a mut Exchange,
    since: Option<LayerId>,
    /// What has not been planned yet.
    rest: Range,
    plan: VecDeque<Step>,
    ahead: VecDeque<Slot>,
    asked: usize,
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// There is nothing to read.
    Still(Vec<Run>),
    Read(Range),
}

enum Slot {
    Still(Vec<Run>),
    Asked(u64),
}

impl<'a> Walk<'a> {
    pub(super) fn new(exchange: &'a mut Exchange, since: Option<LayerId>, range: Range) -> Self {
        Self { exchange, since, rest: range, plan: VecDeque::new(), ahead: VecDeque::new(), asked: 0 }
    }

    /// The next part, right after the one before it; `None` at the end. May be dropped and called again.
    pub async fn next(&mut self) -> Result<Option<Chunk>, ReaderError> {
        loop {
            self.ask_ahead();
            if self.asked < PIPELINE && self.plan.is_empty() && self.rest.len > 0 {
                self.look_ahead().await?;
                continue;
            }
            let chunk = match self.ahead.front_mut() {
                None => return Ok(None),
                Some(Slot::Still(runs)) => Chunk { runs: std::mem::take(runs), data: Bytes::new() },
                Some(Slot::Asked(id)) => {
                    let chunk = self.exchange.answer(*id).await?;
                    self.asked -= 1;
                    chunk
                }
            };
            self.ahead.pop_front();
            return Ok(Some(chunk));
        }
    }

    fn ask_ahead(&mut self) {
        while self.asked < PIPELINE
            && let Some(step) = self.plan.pop_front()
        {
            self.ahead.push_back(match step {
                Step::Still(runs) => Slot::Still(runs),
                Step::Read(range) => {
                    self.asked += 1;
                    Slot::Asked(self.exchange.ask(Question { since: self.since, range, content: true }))
                }
            });
        }
    }

    async fn look_ahead(&mut self) -> Result<(), ReaderError> {
        let question = Question { since: self.since, range: self.rest, content: false };
        let id = self.exchange.ask(question);
        let found = self.exchange.answer(id).await?;
        let seen: u64 = found.runs.iter().map(|run| run.range.len).sum();
        self.rest = Range::new(self.rest.offset + seen, self.rest.len - seen);
        self.plan = plan(&found.runs);
        Ok(())
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        self.exchange.forget();
    }
}

/// One question for each window that holds data, from its first data to its last.
fn plan(runs: &[Run]) -> VecDeque<Step> {
    let mut steps = VecDeque::new();
    let mut still: Vec<Run> = Vec::new();
    for run in runs {
        if run.kind != RunKind::Data {
            still.push(*run);
            continue;
        }
        let mut at = run.range.offset;
        while at < run.range.end() {
            let end = run.range.end().min((at / WINDOW + 1) * WINDOW);
            match steps.back_mut() {
                Some(Step::Read(before)) if before.offset / WINDOW == at / WINDOW => {
                    before.len = end - before.offset;
                    still.clear();
                }
                _ => {
                    rest(&mut steps, &mut still);
                    steps.push_back(Step::Read(Range::new(at, end - at)));
                }
            }
            at = end;
        }
    }
    rest(&mut steps, &mut still);
    steps
}

fn rest(steps: &mut VecDeque<Step>, still: &mut Vec<Run>) {
    if !still.is_empty() {
        steps.push_back(Step::Still(std::mem::take(still)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::geometry::BLOCK;

    fn run(range: std::ops::Range<u64>, kind: RunKind) -> Run {
        Run { range: Range::of_blocks(range), kind }
    }

    #[test]
    fn a_window_is_asked_for_once_however_fragmented_it_is() {
        use RunKind::{Absent, Data, Zero};
        let runs = [
            run(0..10, Absent),
            run(10..11, Data),
            run(11..12, Zero),
            run(12..13, Absent),
            run(13..14, Data),
            run(14..300, Zero),
            run(300..600, Data),
            run(600..9000, Absent),
        ];
        let expected = [
            Step::Still(vec![runs[0]]),
            Step::Read(Range::of_blocks(10..14)),
            Step::Still(vec![runs[5]]),
            Step::Read(Range::of_blocks(300..512)),
            Step::Read(Range::of_blocks(512..600)),
            Step::Still(vec![runs[7]]),
        ];
        assert_eq!(Vec::from(plan(&runs)), expected);
    }

    proptest! {
        #[test]
        fn a_plan_covers_everything_in_order_and_in_messages(
            lens in proptest::collection::vec((1..700u64, 0..3usize), 1..60),
        ) {
            let kinds = [RunKind::Absent, RunKind::Zero, RunKind::Data];
            let mut at = 0;
            let runs: Vec<Run> = lens.iter().map(|(len, kind)| {
                at += len;
                run(at - len..at, kinds[*kind])
            }).collect();
            let mut reached = 0;
            for step in plan(&runs) {
                let (start, end) = match &step {
                    Step::Still(runs) => {
                        prop_assert!(runs.iter().all(|run| run.kind != RunKind::Data));
                        (runs[0].range.offset, runs[runs.len() - 1].range.end())
                    }
                    Step::Read(range) => {
                        prop_assert!(range.len <= u64::from(MAX_IO));
                        (range.offset, range.end())
                    }
                };
                prop_assert_eq!(start, reached);
                reached = end;
            }
            prop_assert_eq!(reached, at * BLOCK);
        }
    }
}
