//! The server's side of the handshake, up to the point where requests begin.
//! It only turns received bytes into bytes to send; sockets and TLS belong to the connection.

use bytes::{Buf, BufMut, BytesMut};
use serde::{Deserialize, Serialize};

use super::meta_context::{ContextQuery, allocation_is_asked_for};
use super::wire::{
    ALLOCATION_CONTEXT, ALLOCATION_CONTEXT_ID, INIT_MAGIC, MAX_PAYLOAD, MAX_STRING, OPTION_HEADER_LEN,
    OPTION_MAGIC, OPTION_REPLY_MAGIC, PREFERRED_BLOCK, export_flag, handshake_flag, info, option,
    option_reply,
};

/// No option we answer needs more; a longer one closes the connection.
const MAX_OPTION_LEN: u32 = 64 << 10;

/// What the server has to offer to this client.
pub(crate) struct Offer<'a> {
    pub name: &'a str,
    pub description: &'a str,
    pub size: u64,
    pub read_only: bool,
    pub tls: TlsOffer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsOffer {
    Off,
    Allowed,
    Required,
}

/// What a client and we agreed on; requests are read and answered accordingly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub structured: bool,
    pub allocation: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Negotiation {
    flags_received: bool,
    no_zeroes: bool,
    secure: bool,
    session: Session,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// All complete options are answered.
    NeedMore,
    /// Send what is to be sent, then begin TLS on the socket.
    StartTls,
    /// Send what is to be sent; requests follow.
    Transmit(Session),
    /// Send what is to be sent and close.
    Close,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NegotiationError {
    #[error("the client sent flags {0:#x} that we did not offer")]
    ClientFlags(u32),
    #[error("an option began with {0:#x}, which is not the magic number of one")]
    Magic(u64),
    #[error("option {0} has {1} bytes of data")]
    TooLong(u32, u32),
    #[error("the client asked for export {0:?} by the old way, and it is not there or needs TLS")]
    NoSuchExport(String),
    #[error("bytes were sent in plain text where TLS was to begin")]
    PlainAfterStartTls,
}

/// The first thing a server says.
pub(crate) fn greet(out: &mut BytesMut) {
    out.put_u64(INIT_MAGIC);
    out.put_u64(OPTION_MAGIC);
    out.put_u16(handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES);
}

impl Negotiation {
    /// TLS is up: what was agreed on in plain text is forgotten, as the protocol asks.
    pub fn secured(&self) -> Self {
        Self { secure: true, session: Session::default(), ..self.clone() }
    }

    /// Takes complete messages out of `input` and appends the answers to `out`.
    pub fn step(
        &mut self,
        input: &mut BytesMut,
        out: &mut BytesMut,
        offer: &Offer<'_>,
    ) -> Result<Step, NegotiationError> {
        if !self.flags_received {
            if input.len() < 4 {
                return Ok(Step::NeedMore);
            }
            self.client_flags(input.get_u32())?;
        }
        while input.len() >= OPTION_HEADER_LEN {
            let mut header = &input[..OPTION_HEADER_LEN];
            let (magic, option, len) = (header.get_u64(), header.get_u32(), header.get_u32());
            if magic != OPTION_MAGIC {
                return Err(NegotiationError::Magic(magic));
            }
            if len > MAX_OPTION_LEN {
                return Err(NegotiationError::TooLong(option, len));
            }
            if input.len() < OPTION_HEADER_LEN + len as usize {
                break;
            }
            input.advance(OPTION_HEADER_LEN);
            let data = input.split_to(len as usize);
            match self.option(option, &data, out, offer)? {
                Step::NeedMore => {}
                Step::StartTls if !input.is_empty() => return Err(NegotiationError::PlainAfterStartTls),
                step => return Ok(step),
            }
        }
        Ok(Step::NeedMore)
    }

    fn client_flags(&mut self, flags: u32) -> Result<(), NegotiationError> {
        let known = u32::from(handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES);
        if flags & !known != 0 {
            return Err(NegotiationError::ClientFlags(flags));
        }
        self.flags_received = true;
        self.no_zeroes = flags & u32::from(handshake_flag::NO_ZEROES) != 0;
        Ok(())
    }

    fn option(
        &mut self,
        option: u32,
        data: &[u8],
        out: &mut BytesMut,
        offer: &Offer<'_>,
    ) -> Result<Step, NegotiationError> {
        let blocked = offer.tls == TlsOffer::Required && !self.secure;
        let mut answer = Answer { option, out };
        match option {
            option::EXPORT_NAME => return self.export_name(data, answer.out, offer, blocked),
            option::ABORT => {
                answer.ack();
                return Ok(Step::Close);
            }
            option::STARTTLS => return Ok(self.start_tls(data, answer, offer)),
            _ if blocked => answer.error(option_reply::TLS_REQUIRED, "this server only serves TLS"),
            option::LIST if data.is_empty() => {
                answer.export(offer);
                answer.ack();
            }
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.session.structured = true;
                answer.ack();
            }
            option::LIST | option::STRUCTURED_REPLY => {
                answer.error(option_reply::INVALID, "this option has no data");
            }
            option::INFO | option::GO => return Ok(self.info(data, answer, offer)),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.meta_context(data, answer, offer),
            _ => answer.error(option_reply::UNSUPPORTED, "this server does not know the option"),
        }
        Ok(Step::NeedMore)
    }

    /// The old way in, which has no way to say no but to hang up.
    fn export_name(
        &self,
        name: &[u8],
        out: &mut BytesMut,
        offer: &Offer<'_>,
        blocked: bool,
    ) -> Result<Step, NegotiationError> {
        if blocked || !offer.answers_to(name) {
            return Err(NegotiationError::NoSuchExport(String::from_utf8_lossy(name).into_owned()));
        }
        out.put_u64(offer.size);
        out.put_u16(self.export_flags(offer));
        if !self.no_zeroes {
            out.put_bytes(0, 124);
        }
        Ok(Step::Transmit(self.session))
    }

    fn start_tls(&self, data: &[u8], mut answer: Answer<'_>, offer: &Offer<'_>) -> Step {
        if !data.is_empty() || self.secure {
            answer.error(option_reply::INVALID, "TLS is on already, or the option has data");
        } else if offer.tls == TlsOffer::Off {
            answer.error(option_reply::POLICY, "TLS is off on this server");
        } else {
            answer.ack();
            return Step::StartTls;
        }
        Step::NeedMore
    }

    fn info(&self, data: &[u8], mut answer: Answer<'_>, offer: &Offer<'_>) -> Step {
        let Some(query) = InfoQuery::decode(data) else {
            answer.error(option_reply::INVALID, "the request for information is malformed");
            return Step::NeedMore;
        };
        if !offer.answers_to(query.name) {
            answer.error(option_reply::UNKNOWN, "there is no such export");
            return Step::NeedMore;
        }
        answer.info(info::EXPORT, |out| {
            out.put_u64(offer.size);
            out.put_u16(self.export_flags(offer));
        });
        answer.info(info::BLOCK_SIZE, |out| {
            out.put_u32(1);
            out.put_u32(PREFERRED_BLOCK);
            out.put_u32(MAX_PAYLOAD);
        });
        if query.asks(info::NAME) {
            answer.info(info::NAME, |out| out.put_slice(offer.name.as_bytes()));
        }
        if query.asks(info::DESCRIPTION) && !offer.description.is_empty() {
            answer.info(info::DESCRIPTION, |out| out.put_slice(offer.description.as_bytes()));
        }
        answer.ack();
        if answer.option == option::GO { Step::Transmit(self.session) } else { Step::NeedMore }
    }

    fn meta_context(&mut self, data: &[u8], mut answer: Answer<'_>, offer: &Offer<'_>) {
        let setting = answer.option == option::SET_META_CONTEXT;
        if setting {
            self.session.allocation = false;
        }
        let Some(query) = ContextQuery::decode(data) else {
            return answer.error(option_reply::INVALID, "the list of contexts is malformed");
        };
        if !self.session.structured {
            return answer.error(option_reply::INVALID, "contexts need structured replies");
        }
        if !offer.answers_to(query.export) {
            return answer.error(option_reply::UNKNOWN, "there is no such export");
        }
        if allocation_is_asked_for(&query, setting) {
            let id = if setting { ALLOCATION_CONTEXT_ID } else { 0 };
            answer.reply(option_reply::META_CONTEXT, |out| {
                out.put_u32(id);
                out.put_slice(ALLOCATION_CONTEXT.as_bytes());
            });
            self.session.allocation |= setting;
        }
        answer.ack();
    }

    fn export_flags(&self, offer: &Offer<'_>) -> u16 {
        use export_flag::{
            CAN_MULTI_CONN, HAS_FLAGS, READ_ONLY, SEND_CACHE, SEND_DF, SEND_FAST_ZERO, SEND_FLUSH, SEND_FUA,
            SEND_TRIM, SEND_WRITE_ZEROES,
        };
        let writing = SEND_FUA | SEND_TRIM | SEND_WRITE_ZEROES | SEND_FAST_ZERO;
        let mut flags = HAS_FLAGS | SEND_FLUSH | CAN_MULTI_CONN | SEND_CACHE;
        flags |= if offer.read_only { READ_ONLY } else { writing };
        if self.session.structured {
            flags |= SEND_DF;
        }
        flags
    }
}

impl Offer<'_> {
    /// One export: it has a name, and it is also the default one.
    fn answers_to(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.name.as_bytes()
    }
}

/// Writes the replies to one option.
struct Answer<'a> {
    option: u32,
    out: &'a mut BytesMut,
}

impl Answer<'_> {
    fn reply(&mut self, kind: u32, body: impl FnOnce(&mut BytesMut)) {
        self.out.put_u64(OPTION_REPLY_MAGIC);
        self.out.put_u32(self.option);
        self.out.put_u32(kind);
        let len_at = self.out.len();
        self.out.put_u32(0);
        body(self.out);
        let len = (self.out.len() - len_at - 4) as u32;
        self.out[len_at..len_at + 4].copy_from_slice(&len.to_be_bytes());
    }

    fn ack(&mut self) {
        self.reply(option_reply::ACK, |_| {});
    }

    fn error(&mut self, kind: u32, message: &str) {
        self.reply(kind, |out| out.put_slice(message.as_bytes()));
    }

    fn info(&mut self, kind: u16, body: impl FnOnce(&mut BytesMut)) {
        self.reply(option_reply::INFO, |out| {
            out.put_u16(kind);
            body(out);
        });
    }

    fn export(&mut self, offer: &Offer<'_>) {
        self.reply(option_reply::SERVER, |out| {
            out.put_u32(offer.name.len() as u32);
            out.put_slice(offer.name.as_bytes());
            out.put_slice(offer.description.as_bytes());
        });
    }
}

/// The data of INFO and GO: a name and the kinds of information wanted.
struct InfoQuery<'a> {
    name: &'a [u8],
    kinds: &'a [u8],
}

impl<'a> InfoQuery<'a> {
    fn decode(mut data: &'a [u8]) -> Option<Self> {
        let name_len = data.try_get_u32().ok()? as usize;
        let (name, mut rest) = data.split_at_checked(name_len)?;
        let count = usize::from(rest.try_get_u16().ok()?);
        (name.len() <= MAX_STRING && rest.len() == count * 2).then_some(Self { name, kinds: rest })
    }

    fn asks(&self, kind: u16) -> bool {
        self.kinds.chunks_exact(2).any(|raw| raw == kind.to_be_bytes())
    }
}

#[cfg(test)]
#[path = "negotiation_tests.rs"]
mod tests;
