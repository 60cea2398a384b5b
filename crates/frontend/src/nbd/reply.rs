//! From an action to the bytes that answer it: runs it on the volume and encodes the outcome.

use bytes::{BufMut, Bytes, BytesMut};

use super::action::Action;
use super::outbox::Outbox;
use super::wire::{
    ALLOCATION_CONTEXT_ID, CHUNK_MAGIC, NbdError, Request, SIMPLE_REPLY_MAGIC, STATE_HOLE_AND_ZERO, chunk,
    command,
};
use crate::zeroes::are_zeroes;
use crate::{AllocationRun, Volume};

/// What is to be said about one request.
pub(crate) struct Reply {
    pub request: Request,
    pub outcome: Result<Answer, NbdError>,
}

pub(crate) enum Answer {
    Done,
    Data(Bytes),
    Status(Vec<AllocationRun>),
}

/// Does what was asked for. Dropping the future is allowed; what was begun goes on in the volume.
pub(crate) async fn perform<V: Volume>(volume: V, request: Request, action: Action, payload: Bytes) -> Reply {
    let done = |result: Result<(), _>| result.map(|()| Answer::Done);
    let outcome = match action {
        Action::Read { offset, len } => match volume.read(offset, len).await {
            Ok(data) if data.len() == len as usize => Ok(Answer::Data(data)),
            Ok(_) => Err(crate::VolumeError::Io),
            Err(error) => Err(error),
        },
        Action::Write { offset, durable } => done(volume.write(offset, payload, durable).await),
        Action::Zero { offset, len, allocate, durable } => {
            done(volume.zero(offset, len, allocate, durable).await)
        }
        Action::Flush => done(volume.flush().await),
        Action::Status { offset, len, only_one } => {
            let runs = volume.allocation(offset, u64::from(len)).await;
            runs.map(|runs| Answer::Status(merge(runs, u64::from(len), only_one)))
        }
        Action::Nothing | Action::Disconnect => Ok(Answer::Done),
    };
    Reply { request, outcome: outcome.map_err(NbdError::from) }
}

impl Reply {
    pub fn encode(self, structured: bool, outbox: &mut Outbox) {
        let Request { cookie, offset, len, command, .. } = self.request;
        // Only the commands whose answer carries data need the structured form; the simple one is shorter.
        let structured = structured && matches!(command, command::READ | command::BLOCK_STATUS);
        match self.outcome {
            Err(error) if structured => {
                chunk_head(outbox.head(), chunk::ERROR, cookie, 6);
                outbox.head().put_u32(error as u32);
                outbox.head().put_u16(0);
            }
            Err(error) => simple(outbox.head(), error as u32, cookie),
            Ok(Answer::Done) => simple(outbox.head(), 0, cookie),
            Ok(Answer::Data(data)) if !structured => {
                simple(outbox.head(), 0, cookie);
                outbox.payload(data);
            }
            Ok(Answer::Data(data)) if data.is_empty() => chunk_head(outbox.head(), chunk::NONE, cookie, 0),
            Ok(Answer::Data(data)) if are_zeroes(&data) => {
                chunk_head(outbox.head(), chunk::OFFSET_HOLE, cookie, 12);
                outbox.head().put_u64(offset);
                outbox.head().put_u32(len);
            }
            Ok(Answer::Data(data)) => {
                chunk_head(outbox.head(), chunk::OFFSET_DATA, cookie, 8 + len);
                outbox.head().put_u64(offset);
                outbox.payload(data);
            }
            Ok(Answer::Status(runs)) => {
                chunk_head(outbox.head(), chunk::BLOCK_STATUS, cookie, 4 + 8 * runs.len() as u32);
                let mut body = BytesMut::with_capacity(4 + 8 * runs.len());
                body.put_u32(ALLOCATION_CONTEXT_ID);
                for run in runs {
                    body.put_u32(run.len as u32);
                    body.put_u32(if run.hole { STATE_HOLE_AND_ZERO } else { 0 });
                }
                outbox.payload(body.freeze());
            }
        }
    }
}

fn simple(out: &mut BytesMut, error: u32, cookie: u64) {
    out.put_u32(SIMPLE_REPLY_MAGIC);
    out.put_u32(error);
    out.put_u64(cookie);
}

/// Every answer of ours is one chunk, so each is the last.
fn chunk_head(out: &mut BytesMut, kind: u16, cookie: u64, len: u32) {
    out.put_u32(CHUNK_MAGIC);
    out.put_u16(chunk::DONE);
    out.put_u16(kind);
    out.put_u64(cookie);
    out.put_u32(len);
}

/// Neighbours that are alike become one; nothing reaches beyond what was asked for. What a volume left out at the
/// end stays out, as the protocol allows, but an answer is never empty.
fn merge(runs: Vec<AllocationRun>, asked: u64, only_one: bool) -> Vec<AllocationRun> {
    let mut merged: Vec<AllocationRun> = Vec::with_capacity(runs.len());
    let mut left = asked;
    for run in runs {
        let len = run.len.min(left);
        left -= len;
        match merged.last_mut() {
            _ if len == 0 => {}
            Some(last) if last.hole == run.hole => last.len += len,
            Some(_) if only_one => break,
            _ => merged.push(AllocationRun { len, ..run }),
        }
    }
    if merged.is_empty() {
        merged.push(AllocationRun { len: asked, hole: false });
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(len: u64) -> AllocationRun {
        AllocationRun { len, hole: false }
    }

    fn hole(len: u64) -> AllocationRun {
        AllocationRun { len, hole: true }
    }

    #[test]
    fn runs_are_merged_and_cut_to_the_question() {
        for (runs, asked, only_one, expected) in [
            (vec![data(4), data(4), hole(8)], 16, false, vec![data(8), hole(8)]),
            (vec![data(4), data(4), hole(8)], 16, true, vec![data(8)]),
            (vec![hole(100)], 16, false, vec![hole(16)]),
            (vec![data(4), hole(0), data(4)], 16, false, vec![data(8)]),
            (vec![data(16), hole(16)], 16, false, vec![data(16)]),
            (vec![], 16, false, vec![data(16)]),
        ] {
            assert_eq!(merge(runs.clone(), asked, only_one), expected, "{runs:?} for {asked}");
        }
    }

    fn encoded(command: u16, structured: bool, outcome: Result<Answer, NbdError>) -> Vec<u8> {
        let mut outbox = Outbox::default();
        let request = Request { flags: 0, command, cookie: 7, offset: 4096, len: 4 };
        Reply { request, outcome }.encode(structured, &mut outbox);
        outbox.into_bytes().to_vec()
    }

    #[test]
    fn each_outcome_has_its_form() {
        let read = || Ok(Answer::Data(Bytes::from_static(b"data")));
        assert_eq!(encoded(command::READ, false, read()), b"\x67\x44\x66\x98\0\0\0\0\0\0\0\0\0\0\0\x07data");
        let chunk = b"\x66\x8e\x33\xef\0\x01\0\x01\0\0\0\0\0\0\0\x07\0\0\0\x0c\0\0\0\0\0\0\x10\0data";
        assert_eq!(encoded(command::READ, true, read()), chunk);
        let hole = b"\x66\x8e\x33\xef\0\x01\0\x02\0\0\0\0\0\0\0\x07\0\0\0\x0c\0\0\0\0\0\0\x10\0\0\0\0\x04";
        assert_eq!(encoded(command::READ, true, Ok(Answer::Data(crate::zeroes::zeroes(4)))), hole);
        let error = b"\x66\x8e\x33\xef\0\x01\x80\x01\0\0\0\0\0\0\0\x07\0\0\0\x06\0\0\0\x05\0\0";
        assert_eq!(encoded(command::READ, true, Err(NbdError::Io)), error);
        let simple = b"\x67\x44\x66\x98\0\0\0\x1c\0\0\0\0\0\0\0\x07";
        assert_eq!(encoded(command::WRITE, true, Err(NbdError::NoSpace)), simple);
        let status =
            b"\x66\x8e\x33\xef\0\x01\0\x05\0\0\0\0\0\0\0\x07\0\0\0\x0c\0\0\0\x01\0\0\0\x04\0\0\0\x03";
        assert_eq!(encoded(command::BLOCK_STATUS, true, Ok(Answer::Status(vec![hole_run()]))), status);
    }

    fn hole_run() -> AllocationRun {
        hole(4)
    }
}
