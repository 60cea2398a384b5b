//! Any bytes as what a peer sends, in any pieces: nothing may panic, no more is kept than the limits allow, and a
//! message that is understood is the same after another trip.
#![no_main]

use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use granary_block::wire::codec::{decode_reply, decode_request};
use granary_block::wire::frame::{Frame, HEADER, Header, Limits, Parsed, parse};
use granary_block::wire::outgoing::Outgoing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    match choice % 2 {
        0 => raw(*choice, rest),
        _ => framed(rest),
    }
});

/// As it is; the checksums stop most of it.
fn raw(step: u8, bytes: &[u8]) {
    let limits = if step & 2 == 0 { Limits::SESSION } else { Limits::HANDSHAKE };
    let mut buffer = BytesMut::new();
    for piece in bytes.chunks(usize::from(step).max(1)) {
        buffer.extend_from_slice(piece);
        loop {
            match parse(&mut buffer, limits) {
                Ok(Parsed::Frame(frame)) => decode(frame),
                Ok(Parsed::NeedBytes(needed)) => {
                    let most = HEADER + limits.meta as usize + limits.payload as usize;
                    assert!(needed > buffer.len() && needed <= most);
                    break;
                }
                Err(_) => return,
            }
        }
    }
}

/// With right checksums, so that it reaches the codec: kind, flags, where the payload begins, then the body.
fn framed(bytes: &[u8]) {
    let [kind, flags, split, offset, length, body @ ..] = bytes else { return };
    let (meta, payload) = body.split_at(usize::from(*split).min(body.len()));
    let header = Header {
        kind: *kind,
        flags: *flags,
        id: 7,
        offset: u64::from(*offset) << 12,
        length: u64::from(*length) << 12,
        ..Header::default()
    };
    let mut outgoing = Outgoing::default();
    outgoing.push(header, meta, &Bytes::copy_from_slice(payload));
    decode(sent(outgoing));
}

fn decode(frame: Frame) {
    if let Ok((id, request)) = decode_request(frame.clone()) {
        let mut outgoing = Outgoing::default();
        outgoing.request(id, &request);
        assert_eq!(decode_request(sent(outgoing)).ok(), Some((id, request)));
    }
    if let Ok((id, reply)) = decode_reply(frame) {
        let mut outgoing = Outgoing::default();
        outgoing.reply(id, &reply);
        assert_eq!(decode_reply(sent(outgoing)).ok(), Some((id, reply)));
    }
}

/// The one message in there, as the other side reads it.
fn sent(mut outgoing: Outgoing) -> Frame {
    let mut bytes = Vec::new();
    let written = outgoing.poll_write(&mut Context::from_waker(Waker::noop()), &mut bytes);
    assert!(matches!(written, Poll::Ready(Ok(()))));
    match parse(&mut BytesMut::from(&bytes[..]), Limits { meta: u32::MAX, payload: u32::MAX }) {
        Ok(Parsed::Frame(frame)) => frame,
        other => panic!("what was sent is not a message: {other:?}"),
    }
}
