//! Any sequence of requests of two engines to one replica: nothing may panic, every answer fits a message, and what
//! an engine that does not own the replica asks for changes nothing.
//!
//! A request is eight bytes and a body: kind, flags, engine, block, blocks, length of the meta (two bytes), blocks of
//! payload.
#![no_main]

use std::sync::Arc;

use bytes::Bytes;
use granary_block::disk::simulated::Simulated;
use granary_block::geometry::BLOCK;
use granary_block::ids::{EngineId, Generation, LayerId, ReplicaId};
use granary_block::replica::rules::Need;
use granary_block::replica::rules::need;
use granary_block::replica::service::{Service, Session};
use granary_block::store::{CreateOptions, Limits as StoreLimits, Store};
use granary_block::wire::codec::decode_request;
use granary_block::wire::frame::{Frame, Header, Limits};
use granary_block::wire::message::{Control, FailureKind, Member, Membership, Reply, Request};
use granary_block::wire::outgoing::Outgoing;
use libfuzzer_sys::fuzz_target;
use uuid::Uuid;

fuzz_target!(|data: &[u8]| {
    let disk = Simulated::new();
    disk.set_capacity(16 << 20);
    let options = CreateOptions {
        replica: ReplicaId(Uuid::from_u128(1)),
        head: LayerId(Uuid::from_u128(2)),
        limits: StoreLimits { layers: 20, reserve: 1 << 20 },
        ..CreateOptions::new(8 << 20)
    };
    let store = Store::create(Arc::new(disk), options).expect("an empty disk takes a volume");
    let service = Service::new(Arc::new(store), Box::new(|task| task()));
    let engines = [service.begin("vol"), service.begin("vol")];
    open(&service, &engines[0]);
    let mut rest = data;
    while let Some((request, engine)) = next(&mut rest) {
        let session = &engines[engine];
        let owned = service.may_flush(session).is_ok();
        let may_look_only = !owned && !matches!(need(&request), Need::Open(_) | Need::Adopt(_));
        let before = may_look_only.then(|| info(&service, session));
        let free = matches!(need(&request), Need::Nothing | Need::Frozen);
        let reply = service.handle(session, request);
        if let Some(before) = before {
            assert_eq!(before, info(&service, session), "a stranger changed the replica");
            let fenced = matches!(&reply, Reply::Failed(failure) if failure.kind == FailureKind::Fenced);
            assert!(free || fenced, "a stranger was answered {reply:?}");
        }
        let mut outgoing = Outgoing::default();
        outgoing.reply(0, &reply);
        assert!(outgoing.pending() < (Limits::SESSION.meta + Limits::SESSION.payload) as usize);
    }
});

fn open(service: &Service, session: &Session) {
    let members = vec![Member { replica: ReplicaId(Uuid::from_u128(1)), address: String::new(), boot: String::new() }];
    let record = Membership { generation: Generation(1), members, ..Membership::default() };
    let engine = EngineId(Uuid::from_u128(3));
    let reply = service.handle(session, Request::Control(Control::Open { engine, record }));
    assert_eq!(reply, Reply::Done);
}

fn info(service: &Service, session: &Session) -> Reply {
    service.handle(session, Request::Control(Control::Info))
}

/// Takes the next request off the input; those that the codec refuses are passed over.
fn next(rest: &mut &[u8]) -> Option<(Request, usize)> {
    loop {
        let [kind, flags, engine, block, blocks, low, high, payload, after @ ..] = *rest else { return None };
        let (meta, after) = after.split_at(usize::from(u16::from_le_bytes([*low, *high])).min(after.len()));
        *rest = after;
        let payload = Bytes::from(vec![*flags; usize::from(payload % 8) * BLOCK as usize]);
        let length = if *kind == 2 { payload.len() as u64 } else { u64::from(*blocks) * BLOCK };
        let header = Header {
            kind: *kind,
            flags: *flags,
            offset: u64::from(*block) * BLOCK,
            length,
            meta_len: meta.len() as u32,
            payload_len: payload.len() as u32,
            ..Header::default()
        };
        let frame = Frame { header, meta: Bytes::copy_from_slice(meta), payload };
        if let Ok((_, request)) = decode_request(frame) {
            return Some((request, usize::from(engine % 2)));
        }
    }
}
