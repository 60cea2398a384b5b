//! What a request asks of the volume, after everything that can be wrong with it has been checked.
//! It decides; it does no I/O.

use super::negotiation::Session;
use super::wire::{MAX_PAYLOAD, NbdError, Request, command, command_flag};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Read {
        offset: u64,
        len: u32,
    },
    Write {
        offset: u64,
        durable: bool,
    },
    Zero {
        offset: u64,
        len: u64,
        allocate: bool,
        durable: bool,
    },
    Flush,
    Status {
        offset: u64,
        len: u32,
        only_one: bool,
    },
    /// Nothing to do, and that is a success.
    Nothing,
    /// The client says goodbye; there is no answer.
    Disconnect,
}

/// What of an export decides whether a request is allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub size: u64,
    pub read_only: bool,
    pub session: Session,
}

impl Action {
    pub fn of(request: &Request, rules: &Rules) -> Result<Self, NbdError> {
        let Request { flags, command, offset, len, .. } = *request;
        if flags & !allowed_flags(command, rules)? != 0 {
            return Err(NbdError::Invalid);
        }
        let durable = flags & command_flag::FUA != 0;
        let writes = matches!(command, command::WRITE | command::TRIM | command::WRITE_ZEROES);
        if writes && rules.read_only {
            return Err(NbdError::NotPermitted);
        }
        match command {
            command::DISCONNECT => return Ok(Self::Disconnect),
            command::FLUSH => return Ok(Self::Flush),
            _ => {}
        }
        let inside = offset.checked_add(u64::from(len)).is_some_and(|end| end <= rules.size);
        if !inside {
            return Err(if writes { NbdError::NoSpace } else { NbdError::Invalid });
        }
        match command {
            command::READ if len > MAX_PAYLOAD => Err(NbdError::Invalid),
            command::BLOCK_STATUS if len == 0 => Err(NbdError::Invalid),
            command::BLOCK_STATUS => {
                Ok(Self::Status { offset, len, only_one: flags & command_flag::REQ_ONE != 0 })
            }
            // There is no cache to fill that a read would not fill as well.
            command::CACHE => Ok(Self::Nothing),
            _ if len == 0 && command != command::READ => Ok(Self::Nothing),
            command::READ => Ok(Self::Read { offset, len }),
            command::WRITE => Ok(Self::Write { offset, durable }),
            command::TRIM => Ok(Self::Zero { offset, len: u64::from(len), allocate: false, durable }),
            _ => {
                let allocate = flags & command_flag::NO_HOLE != 0;
                // Only a hole is sure to be made faster than zeroes are written.
                if allocate && flags & command_flag::FAST_ZERO != 0 {
                    return Err(NbdError::NotSupported);
                }
                Ok(Self::Zero { offset, len: u64::from(len), allocate, durable })
            }
        }
    }
}

/// FUA may come with any command; where nothing is written it means nothing.
fn allowed_flags(command: u16, rules: &Rules) -> Result<u16, NbdError> {
    use command_flag::{DONT_FRAGMENT, FAST_ZERO, FUA, NO_HOLE, REQ_ONE};
    Ok(FUA
        | match command {
            command::READ if rules.session.structured => DONT_FRAGMENT,
            command::WRITE_ZEROES => NO_HOLE | FAST_ZERO,
            command::BLOCK_STATUS if rules.session.allocation => REQ_ONE,
            command::READ..=command::WRITE_ZEROES => 0,
            _ => return Err(NbdError::Invalid),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1 << 30;

    fn check(rules: &Rules, command: u16, flags: u16, offset: u64, len: u32) -> Result<Action, NbdError> {
        Action::of(&Request { flags, command, cookie: 0, offset, len }, rules)
    }

    #[test]
    fn every_command_in_every_state() {
        use command::{BLOCK_STATUS, CACHE, DISCONNECT, FLUSH, READ, TRIM, WRITE, WRITE_ZEROES};
        use command_flag::{DONT_FRAGMENT, FAST_ZERO, FUA, NO_HOLE, REQ_ONE};
        let plain = Rules { size: SIZE, read_only: false, session: Session::default() };
        let full = Rules { session: Session { structured: true, allocation: true }, ..plain };
        let read_only = Rules { read_only: true, ..full };
        let zero = |allocate, durable| Action::Zero { offset: 0, len: 4096, allocate, durable };
        #[rustfmt::skip]
        let table = [
            (&plain, READ, 0, 0, 4096, Ok(Action::Read { offset: 0, len: 4096 })),
            (&plain, READ, FUA, SIZE - 1, 1, Ok(Action::Read { offset: SIZE - 1, len: 1 })),
            (&plain, READ, 0, SIZE - 1, 2, Err(NbdError::Invalid)),
            (&plain, READ, 0, u64::MAX, 2, Err(NbdError::Invalid)),
            (&plain, READ, 0, 0, MAX_PAYLOAD + 1, Err(NbdError::Invalid)),
            (&plain, READ, DONT_FRAGMENT, 0, 1, Err(NbdError::Invalid)),
            (&full, READ, DONT_FRAGMENT, 0, 1, Ok(Action::Read { offset: 0, len: 1 })),
            (&plain, WRITE, 0, 512, 512, Ok(Action::Write { offset: 512, durable: false })),
            (&plain, WRITE, FUA, 512, 512, Ok(Action::Write { offset: 512, durable: true })),
            (&plain, WRITE, 0, SIZE, 1, Err(NbdError::NoSpace)),
            (&plain, WRITE, NO_HOLE, 0, 1, Err(NbdError::Invalid)),
            (&plain, WRITE, 0, 0, 0, Ok(Action::Nothing)),
            (&read_only, WRITE, 0, 0, 1, Err(NbdError::NotPermitted)),
            (&read_only, TRIM, 0, 0, 1, Err(NbdError::NotPermitted)),
            (&read_only, WRITE_ZEROES, 0, 0, 1, Err(NbdError::NotPermitted)),
            (&read_only, FLUSH, 0, 0, 0, Ok(Action::Flush)),
            (&plain, FLUSH, FUA, 0, 0, Ok(Action::Flush)),
            (&plain, TRIM, FUA, 0, 4096, Ok(zero(false, true))),
            (&plain, TRIM, 0, SIZE, 4096, Err(NbdError::NoSpace)),
            (&plain, WRITE_ZEROES, 0, 0, 4096, Ok(zero(false, false))),
            (&plain, WRITE_ZEROES, FAST_ZERO, 0, 4096, Ok(zero(false, false))),
            (&plain, WRITE_ZEROES, NO_HOLE | FUA, 0, 4096, Ok(zero(true, true))),
            (&plain, WRITE_ZEROES, NO_HOLE | FAST_ZERO, 0, 4096, Err(NbdError::NotSupported)),
            (&plain, CACHE, 0, 0, u32::MAX, Err(NbdError::Invalid)),
            (&plain, CACHE, 0, 0, 1 << 29, Ok(Action::Nothing)),
            (&plain, BLOCK_STATUS, 0, 0, 4096, Err(NbdError::Invalid)),
            (&full, BLOCK_STATUS, 0, 0, 0, Err(NbdError::Invalid)),
            (&full, BLOCK_STATUS, REQ_ONE, 0, 4096, Ok(Action::Status { offset: 0, len: 4096, only_one: true })),
            (&plain, DISCONNECT, 0, 7, 7, Ok(Action::Disconnect)),
            (&plain, 8, 0, 0, 0, Err(NbdError::Invalid)),
            (&plain, READ, 1 << 15, 0, 1, Err(NbdError::Invalid)),
        ];
        for (rules, command, flags, offset, len, expected) in table {
            assert_eq!(
                check(rules, command, flags, offset, len),
                expected,
                "command {command} flags {flags:#x} offset {offset} len {len} under {rules:?}"
            );
        }
    }
}
