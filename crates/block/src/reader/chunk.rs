//! What one answer of a replica says of a part of a snapshot, checked before anybody believes it.

use bytes::Bytes;

use super::error::Problem;
use crate::geometry::Range;
use crate::ids::LayerId;
use crate::wire::message::{Control, Reply, Run, RunKind};

/// A part of a snapshot: runs without gaps, and the content of those that are data, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub(super) runs: Vec<Run>,
    pub(super) data: Bytes,
}

impl Chunk {
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Each run with its content; what is not data has none.
    pub fn parts(&self) -> impl Iterator<Item = (Run, Bytes)> {
        let mut rest = self.data.clone();
        self.runs.iter().map(move |run| {
            let len = if run.kind == RunKind::Data { run.range.len as usize } else { 0 };
            (*run, rest.split_to(len))
        })
    }
}

/// What is asked of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub since: Option<LayerId>,
    pub range: Range,
    pub content: bool,
}

impl Question {
    pub fn of(self, layer: LayerId) -> Control {
        let Self { since, range, content } = self;
        Control::SnapshotRead { layer, since, range, content }
    }

    /// With content the answer covers the range; without, it may end early.
    pub fn answered(self, reply: Reply) -> Result<Chunk, Problem> {
        let chunk = match (reply, self.content) {
            (Reply::RunsWith(runs, data), true) => Chunk { runs, data },
            (Reply::Runs(runs), false) => Chunk { runs, data: Bytes::new() },
            (Reply::Failed(failure), _) => return Err(Problem::Failed(failure)),
            _ => return Err(Problem::Nonsense("it answered something else than what was asked")),
        };
        let mut at = self.range.offset;
        let mut content: u64 = 0;
        for Run { range, kind } in &chunk.runs {
            if range.offset != at || !range.is_valid() || range.end() > self.range.end() {
                return Err(Problem::Nonsense("it told of parts that were not asked for"));
            }
            at = range.end();
            content += if self.content && *kind == RunKind::Data { range.len } else { 0 };
        }
        let whole = at == self.range.end() || (!self.content && at > self.range.offset);
        if !whole || content != chunk.data.len() as u64 {
            return Err(Problem::Nonsense("it left out a part of what was asked for"));
        }
        Ok(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::BLOCK;

    fn run(start: u64, end: u64, kind: RunKind) -> Run {
        Run { range: Range::of_blocks(start..end), kind }
    }

    fn bytes(blocks: u64) -> Bytes {
        vec![7; (blocks * BLOCK) as usize].into()
    }

    #[test]
    fn only_an_answer_to_the_question_is_believed() {
        use RunKind::{Absent, Data, Zero};
        let question = Question { since: None, range: Range::of_blocks(2..6), content: true };
        let whole = vec![run(2, 3, Data), run(3, 5, Zero), run(5, 6, Data)];
        let good = question.answered(Reply::RunsWith(whole.clone(), bytes(2))).unwrap();
        let lens: Vec<_> = good.parts().map(|(run, data)| (run.kind, data.len() as u64 / BLOCK)).collect();
        assert_eq!(lens, [(Data, 1), (Zero, 0), (Data, 1)]);
        for (runs, content) in [
            (whole.clone(), 3),
            (whole.clone(), 1),
            (Vec::new(), 0),
            (vec![run(2, 5, Absent)], 0),
            (vec![run(2, 7, Absent)], 0),
            (vec![run(3, 6, Absent)], 0),
            (vec![run(2, 4, Absent), run(5, 6, Absent)], 0),
            (vec![run(2, 4, Absent), run(3, 6, Absent)], 0),
            (vec![run(2, 2, Absent), run(2, 6, Absent)], 0),
        ] {
            let told = question.answered(Reply::RunsWith(runs.clone(), bytes(content)));
            assert!(matches!(told, Err(Problem::Nonsense(_))), "{runs:?} with {content} blocks");
        }
        assert!(question.answered(Reply::Runs(whole.clone())).is_err());

        let wide = Question { content: false, ..question };
        assert_eq!(wide.answered(Reply::Runs(whole[..2].to_vec())).unwrap().runs(), &whole[..2]);
        assert!(wide.answered(Reply::Runs(Vec::new())).is_err());
        let overflow = Run { range: Range::new(2 * BLOCK, u64::MAX - BLOCK + 1), kind: Data };
        assert!(wide.answered(Reply::Runs(vec![overflow])).is_err());
    }
}
