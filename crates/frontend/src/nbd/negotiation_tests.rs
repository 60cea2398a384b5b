//! The handshake as tables: every option in every state, and bytes in every piece.

use bytes::{Buf, BufMut, BytesMut};
use proptest::prelude::*;

use super::*;

const OFFER: Offer<'_> =
    Offer { name: "disk", description: "a test", size: 1 << 30, read_only: false, tls: TlsOffer::Allowed };

/// What is on offer, the options sent, where that leads, and the kinds of the replies.
type Row<'a> = (&'a Offer<'a>, &'a [(u32, &'a [u8])], Step, &'a [u32]);

fn options(options: &[(u32, &[u8])]) -> BytesMut {
    let mut input = BytesMut::new();
    input.put_u32(3);
    for (option, data) in options {
        input.put_u64(OPTION_MAGIC);
        input.put_u32(*option);
        input.put_u32(data.len() as u32);
        input.put_slice(data);
    }
    input
}

/// The kinds of the replies, in order.
fn reply_kinds(mut out: BytesMut) -> Vec<u32> {
    let mut kinds = Vec::new();
    while out.has_remaining() {
        assert_eq!(out.get_u64(), OPTION_REPLY_MAGIC);
        let _option = out.get_u32();
        kinds.push(out.get_u32());
        let len = out.get_u32() as usize;
        out.advance(len);
    }
    kinds
}

fn answer(offer: &Offer<'_>, sent: &[(u32, &[u8])]) -> (Result<Step, NegotiationError>, Vec<u32>) {
    let mut out = BytesMut::new();
    let step = Negotiation::default().step(&mut options(sent), &mut out, offer);
    (step, reply_kinds(out))
}

const GO_DISK: &[u8] = b"\0\0\0\x04disk\0\0";
const GO_OTHER: &[u8] = b"\0\0\0\x05other\0\0";
const SET_ALLOCATION: &[u8] = b"\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation";

#[test]
fn every_option_has_its_answer() {
    use option_reply::{
        ACK, INFO, INVALID, META_CONTEXT, POLICY, SERVER, TLS_REQUIRED, UNKNOWN, UNSUPPORTED,
    };
    let plain = Session::default();
    let structured = Session { structured: true, allocation: false };
    let mapped = Session { structured: true, allocation: true };
    let off = Offer { tls: TlsOffer::Off, ..OFFER };
    let required = Offer { tls: TlsOffer::Required, ..OFFER };
    #[rustfmt::skip]
    let table: &[Row<'_>] = &[
        (&OFFER, &[(option::LIST, b"")], Step::NeedMore, &[SERVER, ACK]),
        (&OFFER, &[(option::LIST, b"x")], Step::NeedMore, &[INVALID]),
        (&OFFER, &[(option::ABORT, b"")], Step::Close, &[ACK]),
        (&OFFER, &[(option::INFO, GO_DISK)], Step::NeedMore, &[INFO, INFO, ACK]),
        (&OFFER, &[(option::INFO, b"\0\0\0\0\0\x02\0\x01\0\x02")], Step::NeedMore, &[INFO, INFO, INFO, INFO, ACK]),
        (&OFFER, &[(option::GO, GO_DISK)], Step::Transmit(plain), &[INFO, INFO, ACK]),
        (&OFFER, &[(option::GO, GO_OTHER)], Step::NeedMore, &[UNKNOWN]),
        (&OFFER, &[(option::GO, b"\0\0\0\xffdisk\0\0")], Step::NeedMore, &[INVALID]),
        (&OFFER, &[(option::GO, b"")], Step::NeedMore, &[INVALID]),
        (&OFFER, &[(option::STRUCTURED_REPLY, b""), (option::GO, GO_DISK)], Step::Transmit(structured), &[ACK, INFO, INFO, ACK]),
        (&OFFER, &[(option::SET_META_CONTEXT, SET_ALLOCATION)], Step::NeedMore, &[INVALID]),
        (&OFFER, &[(option::STRUCTURED_REPLY, b""), (option::SET_META_CONTEXT, SET_ALLOCATION), (option::GO, GO_DISK)],
            Step::Transmit(mapped), &[ACK, META_CONTEXT, ACK, INFO, INFO, ACK]),
        (&OFFER, &[(option::STRUCTURED_REPLY, b""), (option::SET_META_CONTEXT, SET_ALLOCATION),
            (option::SET_META_CONTEXT, b"\0\0\0\0\0\0\0\0"), (option::GO, GO_DISK)],
            Step::Transmit(structured), &[ACK, META_CONTEXT, ACK, ACK, INFO, INFO, ACK]),
        (&OFFER, &[(11, b"")], Step::NeedMore, &[UNSUPPORTED]),
        (&OFFER, &[(0xdead, b"whatever")], Step::NeedMore, &[UNSUPPORTED]),
        (&OFFER, &[(option::STARTTLS, b"")], Step::StartTls, &[ACK]),
        (&OFFER, &[(option::STARTTLS, b"x")], Step::NeedMore, &[INVALID]),
        (&off, &[(option::STARTTLS, b"")], Step::NeedMore, &[POLICY]),
        (&required, &[(option::LIST, b"")], Step::NeedMore, &[TLS_REQUIRED]),
        (&required, &[(option::GO, GO_DISK)], Step::NeedMore, &[TLS_REQUIRED]),
        (&required, &[(option::ABORT, b"")], Step::Close, &[ACK]),
        (&required, &[(option::STARTTLS, b"")], Step::StartTls, &[ACK]),
    ];
    for (offer, sent, step, kinds) in table {
        let (got_step, got_kinds) = answer(offer, sent);
        assert_eq!((got_step.as_ref(), &got_kinds[..]), (Ok(step), *kinds), "{:?}: {sent:?}", offer.tls);
    }
}

#[test]
fn the_old_way_in_gives_size_and_flags_or_hangs_up() {
    let mut out = BytesMut::new();
    let step = Negotiation::default().step(&mut options(&[(option::EXPORT_NAME, b"disk")]), &mut out, &OFFER);
    assert_eq!(step, Ok(Step::Transmit(Session::default())));
    assert_eq!((out.get_u64(), out.len()), (1 << 30, 2), "this client wants no padding");

    for (offer, name) in [(&OFFER, "other"), (&Offer { tls: TlsOffer::Required, ..OFFER }, "disk")] {
        let (step, _) = answer(offer, &[(option::EXPORT_NAME, name.as_bytes())]);
        assert_eq!(step, Err(NegotiationError::NoSuchExport(name.into())));
    }
}

#[test]
fn nothing_said_in_plain_text_counts_after_tls() {
    let mut negotiation = Negotiation::default();
    let mut out = BytesMut::new();
    let mut input = options(&[(option::STRUCTURED_REPLY, b""), (option::STARTTLS, b"")]);
    assert_eq!(negotiation.step(&mut input, &mut out, &OFFER), Ok(Step::StartTls));
    let secured = negotiation.secured();
    assert!(secured.secure && secured.flags_received && !secured.session.structured);

    let smuggled = [(option::STARTTLS, &b""[..]), (option::GO, GO_DISK)];
    assert_eq!(answer(&OFFER, &smuggled).0, Err(NegotiationError::PlainAfterStartTls));
}

#[test]
fn a_read_only_export_offers_nothing_that_writes() {
    let read_only = Offer { read_only: true, ..OFFER };
    let flags = Negotiation::default().export_flags(&read_only);
    assert_ne!(flags & export_flag::READ_ONLY, 0);
    assert_eq!(flags & (export_flag::SEND_TRIM | export_flag::SEND_WRITE_ZEROES), 0);
}

#[test]
fn what_cannot_be_an_option_closes_the_connection() {
    let mut flags = BytesMut::from(&0xff_u32.to_be_bytes()[..]);
    let refused = Negotiation::default().step(&mut flags, &mut BytesMut::new(), &OFFER);
    assert_eq!(refused, Err(NegotiationError::ClientFlags(0xff)));

    let mut huge = options(&[]);
    huge.put_u64(OPTION_MAGIC);
    huge.put_u32(option::GO);
    huge.put_u32(u32::MAX);
    let refused = Negotiation::default().step(&mut huge, &mut BytesMut::new(), &OFFER);
    assert_eq!(refused, Err(NegotiationError::TooLong(option::GO, u32::MAX)));
}

proptest! {
    /// However the bytes are cut into pieces, the answers are the same.
    #[test]
    fn pieces_do_not_matter(cuts in proptest::collection::vec(1_usize..30, 0..20)) {
        let sent = [(option::STRUCTURED_REPLY, &b""[..]), (option::LIST, b""), (option::GO, GO_DISK)];
        let mut whole = BytesMut::new();
        let expected = Negotiation::default().step(&mut options(&sent), &mut whole, &OFFER);

        let (mut negotiation, mut out, mut input) = (Negotiation::default(), BytesMut::new(), BytesMut::new());
        let mut rest = options(&sent);
        let mut step = Ok(Step::NeedMore);
        for cut in cuts.into_iter().chain([usize::MAX]) {
            input.extend_from_slice(&rest.split_to(cut.min(rest.len())));
            step = negotiation.step(&mut input, &mut out, &OFFER);
            if step != Ok(Step::NeedMore) {
                break;
            }
        }
        prop_assert_eq!((step, out), (expected, whole));
    }

    #[test]
    fn no_input_makes_it_panic(bytes: Vec<u8>, magic: bool) {
        let mut input = if magic { options(&[]) } else { BytesMut::new() };
        if magic {
            input.put_u64(OPTION_MAGIC);
        }
        input.extend_from_slice(&bytes);
        let _step = Negotiation::default().step(&mut input, &mut BytesMut::new(), &OFFER);
    }
}
