//! Every message survives the wire; nothing that arrives can do more than be refused.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use proptest::prelude::*;
use tokio::io::AsyncWrite;
use uuid::Uuid;

use super::*;
use crate::ids::{EngineId, Generation, LayerId, ReplicaId};
use crate::wire::frame::{HEADER, Limits, Parsed, parse};
use crate::wire::message::{
    Away, FailureKind, Layer, Member, Membership, Progress, Regions, ReplicaInfo, RunKind, SnapshotSpec,
};

/// Takes everything at once.
#[derive(Default)]
struct Sink(BytesMut);

impl AsyncWrite for Sink {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.0.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn through_the_wire(queue: impl FnOnce(&mut Outgoing)) -> Frame {
    let mut outgoing = Outgoing::default();
    queue(&mut outgoing);
    let mut sink = Sink::default();
    let wrote = outgoing.poll_write(&mut Context::from_waker(Waker::noop()), &mut sink);
    assert!(matches!(wrote, Poll::Ready(Ok(()))));
    let Parsed::Frame(frame) = parse(&mut sink.0, Limits::SESSION).unwrap() else { panic!("cut short") };
    assert!(sink.0.is_empty());
    frame
}

fn any_range() -> impl Strategy<Value = Range> {
    (any::<u64>(), any::<u64>()).prop_map(|(offset, len)| Range::new(offset, len))
}

fn any_bytes() -> impl Strategy<Value = Bytes> {
    proptest::collection::vec(any::<u8>(), 0..9000).prop_map(Bytes::from)
}

fn any_layer_id() -> impl Strategy<Value = LayerId> {
    any::<u128>().prop_map(|id| LayerId(Uuid::from_u128(id)))
}

fn any_snapshot() -> impl Strategy<Value = SnapshotSpec> {
    let labels = proptest::collection::btree_map(".{0,8}", ".{0,8}", 0..3);
    (".{0,20}", -1_000_000_000i64..4_000_000_000, any::<bool>(), labels).prop_map(
        |(name, second, user_created, labels)| SnapshotSpec {
            name,
            created: jiff::Timestamp::from_second(second).unwrap(),
            user_created,
            labels,
        },
    )
}

fn any_layer() -> impl Strategy<Value = Layer> {
    let absorbed = proptest::collection::vec(any_layer_id(), 0..3);
    let snapshot = proptest::option::of(any_snapshot());
    let links = (any_layer_id(), proptest::option::of(any_layer_id()), absorbed, snapshot);
    (links, any::<(bool, bool, u64, u64)>(), proptest::option::of(".{0,20}")).prop_map(
        |((id, parent, absorbed, snapshot), (removed, complete, size, allocated), backing)| Layer {
            id,
            parent,
            absorbed,
            snapshot,
            removed,
            complete,
            backing,
            size,
            allocated,
        },
    )
}

fn any_membership() -> impl Strategy<Value = Membership> {
    let member = (any::<u128>(), ".{0,20}").prop_map(|(id, address)| Member {
        replica: ReplicaId(Uuid::from_u128(id)),
        address,
        boot: String::new(),
    });
    let away = any::<(u128, u64)>().prop_map(|(id, generation)| Away {
        replica: ReplicaId(Uuid::from_u128(id)),
        generation: Generation(generation),
    });
    let away = proptest::collection::vec(away, 0..3);
    (any::<u64>(), proptest::collection::vec(member, 0..5), any::<u32>(), away).prop_map(
        |(generation, members, min_in_sync, away)| Membership {
            engine: None,
            generation: Generation(generation),
            members,
            min_in_sync,
            away,
        },
    )
}

fn any_regions() -> impl Strategy<Value = Vec<Regions>> {
    proptest::collection::vec(any::<(u64, u64)>().prop_map(|(first, count)| Regions(first, count)), 0..5)
}

fn any_runs() -> impl Strategy<Value = Vec<Run>> {
    let kind = prop_oneof![Just(RunKind::Absent), Just(RunKind::Zero), Just(RunKind::Data)];
    proptest::collection::vec((any_range(), kind).prop_map(|(range, kind)| Run { range, kind }), 0..5)
}

fn any_control() -> impl Strategy<Value = Control> {
    let engine = || any::<u128>().prop_map(|id| EngineId(Uuid::from_u128(id)));
    let layers = proptest::collection::vec(any_layer(), 0..4);
    prop_oneof![
        Just(Control::Ping),
        Just(Control::Info),
        (engine(), any_membership()).prop_map(|(engine, record)| Control::Open { engine, record }),
        any_membership().prop_map(|record| Control::SetMembership { record }),
        Just(Control::Close),
        (any_regions(), any_regions()).prop_map(|(set, clear)| Control::Intents { set, clear }),
        (any_snapshot(), any_layer_id())
            .prop_map(|(snapshot, new_head)| Control::Snapshot { snapshot, new_head }),
        ".{0,20}".prop_map(|name| Control::RemoveSnapshot { name }),
        (".{0,20}", any_layer_id()).prop_map(|(name, new_head)| Control::Revert { name, new_head }),
        Just(Control::Purge),
        any::<u64>().prop_map(|size| Control::Expand { size }),
        (engine(), any_membership(), any::<u64>(), layers, any_layer_id()).prop_map(
            |(engine, record, size, layers, head)| Control::Adopt { engine, record, size, layers, head }
        ),
        any_layer_id().prop_map(|layer| Control::LayerComplete { layer }),
        (any_layer_id(), any_range()).prop_map(|(layer, range)| Control::LayerRuns { layer, range }),
        (any_layer_id(), any_range()).prop_map(|(layer, range)| Control::LayerRead { layer, range }),
        (any_layer_id(), any_range(), any::<u64>()).prop_map(|(layer, range, chunk)| Control::LayerDigests {
            layer,
            range,
            chunk
        }),
        (any_layer_id(), any_runs()).prop_map(|(layer, runs)| Control::LayerWrite { layer, runs }),
        (any_range(), any::<u64>()).prop_map(|(range, chunk)| Control::Digests { range, chunk }),
        any_range().prop_map(|range| Control::Allocation { range }),
        (any_layer_id(), proptest::option::of(any_layer_id()), any_range(), any::<bool>()).prop_map(
            |(layer, since, range, content)| Control::SnapshotRead { layer, since, range, content }
        ),
        proptest::option::of(".{0,20}").prop_map(|snapshot| Control::Checksum { snapshot }),
    ]
}

fn any_request() -> impl Strategy<Value = Request> {
    prop_oneof![
        any_range().prop_map(|range| Request::Read { range }),
        (any::<u64>(), any_bytes(), any::<bool>()).prop_map(|(offset, data, durable)| Request::Write {
            offset,
            data,
            durable
        }),
        (any_range(), any::<(bool, bool)>()).prop_map(|(range, (allocate, durable))| Request::Zero {
            range,
            allocate,
            durable
        }),
        Just(Request::Flush),
        any_control().prop_map(Request::Control),
        (any_control(), any_bytes()).prop_map(|(control, data)| Request::ControlWith(control, data)),
    ]
}

fn any_info() -> impl Strategy<Value = ReplicaInfo> {
    let layers = proptest::collection::vec(any_layer(), 1..4);
    let progress = (any::<(bool, u64, u64)>(), proptest::option::of(".{0,20}"))
        .prop_map(|((running, done, total), error)| Progress { running, done, total, error });
    (any::<(u128, u64, bool, bool, u64)>(), any_membership(), ".{0,20}", layers, any_regions(), progress)
        .prop_map(|((replica, size, clean, rebuilding, free), membership, boot, layers, intents, purge)| {
            ReplicaInfo {
                replica: ReplicaId(Uuid::from_u128(replica)),
                size,
                membership,
                clean,
                rebuilding,
                boot,
                head: layers[0].id,
                layers,
                intents,
                free,
                purge,
            }
        })
}

fn any_reply() -> impl Strategy<Value = Reply> {
    let failure = (prop_oneof![Just(FailureKind::NoSpace), Just(FailureKind::Fenced)], ".{0,40}")
        .prop_map(|(kind, message)| Failure { kind, message });
    prop_oneof![
        Just(Reply::Done),
        any_bytes().prop_map(Reply::Data),
        any_info().prop_map(|info| Reply::Info(Box::new(info))),
        any_runs().prop_map(Reply::Runs),
        (any_runs(), any_bytes()).prop_map(|(runs, data)| Reply::RunsWith(runs, data)),
        any_bytes().prop_map(Reply::Digests),
        ".{0,40}".prop_map(Reply::Checksum),
        failure.prop_map(Reply::Failed),
    ]
}

proptest! {
    #[test]
    fn a_request_arrives_as_it_was_sent(id in any::<u64>(), request in any_request()) {
        let frame = through_the_wire(|outgoing| outgoing.request(id, &request));
        prop_assert_eq!(decode_request(frame).unwrap(), (id, request));
    }

    #[test]
    fn a_reply_arrives_as_it_was_sent(id in any::<u64>(), reply in any_reply()) {
        let frame = through_the_wire(|outgoing| outgoing.reply(id, &reply));
        prop_assert_eq!(decode_reply(frame).unwrap(), (id, reply));
    }

    #[test]
    fn a_well_formed_frame_with_any_content_is_decoded_or_refused_under_its_id(
        (kind, flags, id, offset, length) in any::<(u8, u8, u64, u64, u64)>(),
        meta in proptest::collection::vec(any::<u8>(), 0..100),
        payload in any_bytes(),
    ) {
        let header = Header { kind, flags, id, offset, length, ..Header::default() };
        let frame = through_the_wire(|outgoing| outgoing.push(header, &meta, &payload));
        match decode_request(frame.clone()) {
            Ok((seen, _)) => prop_assert_eq!(seen, id),
            Err(error) => prop_assert_eq!(error.id(), id),
        }
        match decode_reply(frame) {
            Ok((seen, _)) => prop_assert_eq!(seen, id),
            Err(error) => prop_assert_eq!(error.id(), id),
        }
    }
}

#[test]
fn a_data_request_is_a_header_and_its_payload_and_nothing_else() {
    let frame = through_the_wire(|outgoing| {
        let data = Bytes::from(vec![1; 4096]);
        outgoing.request(7, &Request::Write { offset: 8192, data, durable: true });
        assert_eq!(outgoing.pending(), HEADER + 4096);
    });
    assert_eq!((frame.header.offset, frame.header.length, frame.meta.len()), (8192, 4096, 0));
}

#[test]
fn flags_that_a_kind_does_not_know_are_refused_so_that_they_can_get_a_meaning_later() {
    let header = Header { kind: kind::FLUSH, flags: ALLOCATE, id: 3, ..Header::default() };
    let frame = through_the_wire(|outgoing| outgoing.push(header, &[], &Bytes::new()));
    assert!(matches!(decode_request(frame), Err(CodecError::Shape { id: 3 })));
}
