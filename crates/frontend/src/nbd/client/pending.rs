//! A request that was sent and not fully answered: gathers the chunks of its answer, in whatever order they come.

use bytes::{Buf, Bytes, BytesMut};
use tokio::sync::oneshot;

use super::super::wire::{STATE_HOLE_AND_ZERO, chunk, command, volume_error};
use super::replies::{Body, Message};
use crate::zeroes::zeroes;
use crate::{AllocationRun, VolumeError};

/// What a request brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Data(Bytes),
    Runs(Vec<AllocationRun>),
}

pub(super) type Answer = oneshot::Sender<Result<Outcome, VolumeError>>;

pub(super) struct Pending {
    pub command: u16,
    offset: u64,
    len: u32,
    data: Gathered,
    runs: Vec<AllocationRun>,
    error: Option<VolumeError>,
    answer: Answer,
}

/// The parts of a read.
enum Gathered {
    Nothing,
    /// One part was all.
    Whole(Bytes),
    /// Some parts; `filled` counts their bytes.
    Parts {
        buffer: BytesMut,
        filled: usize,
    },
}

/// The server sent something that cannot be an answer to this request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Nonsense;

impl Pending {
    pub fn new(command: u16, offset: u64, len: u32, answer: Answer) -> Self {
        Self { command, offset, len, data: Gathered::Nothing, runs: Vec::new(), error: None, answer }
    }

    /// How much data a simple reply brings.
    pub fn data_len(&self) -> usize {
        if self.command == command::READ { self.len as usize } else { 0 }
    }

    pub fn take(&mut self, message: Message) -> Result<(), Nonsense> {
        match message.body {
            Body::Simple { error: 0, data } => {
                if self.command == command::READ {
                    self.data = Gathered::Whole(data);
                }
                Ok(())
            }
            Body::Simple { error, .. } => self.fail(error),
            Body::Chunk { kind: chunk::NONE, .. } => Ok(()),
            Body::Chunk { kind: chunk::OFFSET_DATA, mut data } if self.command == command::READ => {
                let offset = data.try_get_u64().map_err(|_| Nonsense)?;
                self.part(offset, data)
            }
            Body::Chunk { kind: chunk::OFFSET_HOLE, mut data } if self.command == command::READ => {
                let offset = data.try_get_u64().map_err(|_| Nonsense)?;
                let len = data.try_get_u32().map_err(|_| Nonsense)?;
                if len > self.len { Err(Nonsense) } else { self.part(offset, zeroes(len as usize)) }
            }
            Body::Chunk { kind: chunk::BLOCK_STATUS, data } if self.command == command::BLOCK_STATUS => {
                self.status(data)
            }
            Body::Chunk { kind, mut data } if kind & chunk::ERROR_BIT != 0 => {
                self.fail(data.try_get_u32().map_err(|_| Nonsense)?)
            }
            Body::Chunk { .. } => Err(Nonsense),
        }
    }

    /// Everything has come.
    pub fn finish(self) {
        let outcome = match (self.error, self.command, self.data) {
            (Some(error), _, _) => Err(error),
            (None, command::READ, Gathered::Whole(data)) => Ok(Outcome::Data(data)),
            (None, command::READ, Gathered::Parts { buffer, filled }) if filled == self.len as usize => {
                Ok(Outcome::Data(buffer.freeze()))
            }
            (None, command::READ, _) if self.len == 0 => Ok(Outcome::Data(Bytes::new())),
            (None, command::READ, _) => Err(VolumeError::Io),
            (None, command::BLOCK_STATUS, _) if self.runs.is_empty() => Err(VolumeError::Io),
            (None, command::BLOCK_STATUS, _) => Ok(Outcome::Runs(self.runs)),
            (None, _, _) => Ok(Outcome::Done),
        };
        // Nobody may be waiting any more; the request was carried out all the same.
        let _unheard = self.answer.send(outcome);
    }

    pub fn abandon(self) {
        let _unheard = self.answer.send(Err(VolumeError::Io));
    }

    fn fail(&mut self, error: u32) -> Result<(), Nonsense> {
        self.error.get_or_insert(volume_error(error));
        Ok(())
    }

    fn part(&mut self, offset: u64, data: Bytes) -> Result<(), Nonsense> {
        let at = offset.checked_sub(self.offset).ok_or(Nonsense)?;
        let inside = at.checked_add(data.len() as u64).is_some_and(|end| end <= u64::from(self.len));
        if !inside {
            return Err(Nonsense);
        }
        match &mut self.data {
            Gathered::Nothing if data.len() == self.len as usize => self.data = Gathered::Whole(data),
            Gathered::Nothing => {
                let buffer = BytesMut::zeroed(self.len as usize);
                self.data = Gathered::Parts { buffer, filled: 0 };
                return self.part(offset, data);
            }
            Gathered::Parts { buffer, filled } => {
                buffer[at as usize..][..data.len()].copy_from_slice(&data);
                *filled += data.len();
            }
            Gathered::Whole(_) => return Err(Nonsense),
        }
        Ok(())
    }

    fn status(&mut self, mut data: Bytes) -> Result<(), Nonsense> {
        // Only one context was asked for, so whatever number the server gave it is that one's.
        data.try_get_u32().map_err(|_| Nonsense)?;
        while let (Ok(len), Ok(state)) = (data.try_get_u32(), data.try_get_u32()) {
            // A hole alone says nothing of what is read there.
            let hole = state & STATE_HOLE_AND_ZERO == STATE_HOLE_AND_ZERO;
            self.runs.push(AllocationRun { len: u64::from(len), hole });
        }
        Ok(())
    }
}

impl Outcome {
    pub fn into_data(self) -> Bytes {
        if let Self::Data(data) = self { data } else { Bytes::new() }
    }

    pub fn into_runs(self) -> Vec<AllocationRun> {
        if let Self::Runs(runs) = self { runs } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BufMut;

    use super::*;

    fn chunk(kind: u16, body: impl FnOnce(&mut BytesMut)) -> Message {
        let mut data = BytesMut::new();
        body(&mut data);
        Message { cookie: 0, body: Body::Chunk { kind, data: data.freeze() }, done: false }
    }

    fn data(offset: u64, data: &[u8]) -> Message {
        chunk(chunk::OFFSET_DATA, |out| {
            out.put_u64(offset);
            out.put_slice(data);
        })
    }

    fn read(len: u32) -> (Pending, oneshot::Receiver<Result<Outcome, VolumeError>>) {
        let (sender, receiver) = oneshot::channel();
        (Pending::new(command::READ, 100, len, sender), receiver)
    }

    #[test]
    fn chunks_come_in_any_order() {
        let (mut pending, mut answer) = read(6);
        pending.take(data(104, b"ef")).unwrap();
        pending
            .take(chunk(chunk::OFFSET_HOLE, |out| {
                out.put_u64(102);
                out.put_u32(2);
            }))
            .unwrap();
        pending.take(data(100, b"ab")).unwrap();
        pending.finish();
        assert_eq!(answer.try_recv().unwrap(), Ok(Outcome::Data(Bytes::from_static(b"ab\0\0ef"))));
    }

    #[test]
    fn an_answer_with_gaps_is_an_error_and_one_beyond_the_question_nonsense() {
        let (mut pending, mut answer) = read(6);
        pending.take(data(100, b"ab")).unwrap();
        pending.finish();
        assert_eq!(answer.try_recv().unwrap(), Err(VolumeError::Io));

        for message in [data(99, b"a"), data(105, b"ab"), data(u64::MAX, b"ab"), chunk(77, |_| {})] {
            assert_eq!(read(6).0.take(message), Err(Nonsense));
        }
    }

    #[test]
    fn an_error_wins_over_data() {
        let (mut pending, mut answer) = read(2);
        pending.take(data(100, b"ab")).unwrap();
        pending.take(chunk(chunk::ERROR, |out| out.put_u32(28))).unwrap();
        pending.finish();
        assert_eq!(answer.try_recv().unwrap(), Err(VolumeError::NoSpace));
    }
}
