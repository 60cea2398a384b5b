//! Who may do what, told as stories over a store on a simulated disk.

use std::sync::atomic::AtomicBool;
use std::thread;

use bytes::Bytes;

use super::*;
use crate::disk::simulated::Simulated;
use crate::geometry::{BLOCK, INTENT_REGION};
use crate::ids::{EngineId, Generation, ReplicaId};
use crate::store::{CreateOptions, OpenOptions};
use crate::wire::message::{Member, Regions, ReplicaInfo, Run, RunKind, SnapshotSpec};

const SIZE: u64 = 64 << 20;

fn on(store: Store) -> Service {
    Service::new(Arc::new(store), Box::new(|task| task()))
}

fn service() -> Service {
    on(Store::create(Arc::new(Simulated::new()), CreateOptions::new(SIZE)).unwrap())
}

fn info(service: &Service) -> ReplicaInfo {
    match service.handle(&service.begin("vol"), Request::Control(Control::Info)) {
        Reply::Info(info) => *info,
        other => panic!("{other:?}"),
    }
}

fn naming(service: &Service, generation: u64) -> Membership {
    let member = Member { replica: info(service).replica, address: "here".into(), boot: String::new() };
    Membership {
        generation: Generation(generation),
        members: vec![member],
        min_in_sync: 1,
        ..Membership::default()
    }
}

fn open(service: &Service, session: &Session, generation: u64) -> Reply {
    let record = naming(service, generation);
    service.handle(session, Request::Control(Control::Open { engine: EngineId::random(), record }))
}

fn adopt(session: &Session, to: &Service, like: &ReplicaInfo, generation: u64) -> Reply {
    let adopt = Control::Adopt {
        engine: EngineId::random(),
        record: Membership { generation: Generation(generation), ..Membership::default() },
        size: like.size,
        layers: like.layers.clone(),
        head: like.head,
    };
    to.handle(session, Request::Control(adopt))
}

fn write(stamp: u8) -> Request {
    Request::Write { offset: 0, data: Bytes::from(vec![stamp; BLOCK as usize]), durable: false }
}

fn read() -> Request {
    Request::Read { range: Range::new(0, BLOCK) }
}

fn block(stamp: u8) -> Reply {
    Reply::Data(Bytes::from(vec![stamp; BLOCK as usize]))
}

#[track_caller]
fn assert_failed(reply: Reply, kind: FailureKind) {
    match reply {
        Reply::Failed(failure) => assert_eq!(failure.kind, kind, "{}", failure.message),
        other => panic!("it was done: {other:?}"),
    }
}

fn snapshot(name: &str) -> Control {
    let snapshot = SnapshotSpec {
        name: name.into(),
        created: jiff::Timestamp::UNIX_EPOCH,
        user_created: true,
        labels: Default::default(),
    };
    Control::Snapshot { snapshot, new_head: LayerId::random() }
}

/// Every request that is not free and does not make its sender the owner.
fn owners_requests(service: &Service) -> Vec<Request> {
    let range = Range::new(0, BLOCK);
    let layer = info(service).head;
    let controls = [
        Control::SetMembership { record: naming(service, 100) },
        Control::Intents { set: vec![Regions(0, 1)], clear: Vec::new() },
        snapshot("s"),
        Control::RemoveSnapshot { name: "s".into() },
        Control::Revert { name: "s".into(), new_head: LayerId::random() },
        Control::Purge,
        Control::Expand { size: 2 * SIZE },
        Control::LayerComplete { layer },
        Control::LayerRuns { layer, range },
        Control::LayerRead { layer, range },
        Control::LayerDigests { layer, range, chunk: BLOCK },
        Control::Digests { range, chunk: BLOCK },
        Control::LayerWrite { layer, runs: Vec::new() },
        Control::Allocation { range },
        Control::Checksum { snapshot: None },
        Control::Close,
    ];
    let with = Control::LayerWrite { layer, runs: vec![Run { range, kind: RunKind::Data }] };
    let data = [
        read(),
        write(9),
        Request::Zero { range, allocate: false, durable: false },
        Request::Flush,
        Request::ControlWith(with, Bytes::from(vec![9; BLOCK as usize])),
    ];
    data.into_iter().chain(controls.map(Request::Control)).collect()
}

#[test]
fn whoever_does_not_own_the_replica_may_look_at_it_and_nothing_else() {
    let service = service();
    let (owner, never_opened, fenced, closed) =
        (service.begin("vol"), service.begin("vol"), service.begin("vol"), service.begin("vol"));
    assert_eq!(open(&service, &closed, 1), Reply::Done);
    assert_eq!(service.handle(&closed, Request::Control(Control::Close)), Reply::Done);
    assert_eq!(open(&service, &fenced, 2), Reply::Done);
    assert_eq!(open(&service, &owner, 3), Reply::Done);
    assert_eq!(service.handle(&owner, write(1)), Reply::Done);
    let before = info(&service);
    for session in [&never_opened, &fenced, &closed] {
        for request in owners_requests(&service) {
            let asked = format!("{request:?}");
            match service.handle(session, request) {
                Reply::Failed(Failure { kind: FailureKind::Fenced, .. }) => {}
                other => panic!("{asked} was answered with {other:?}"),
            }
        }
        assert_eq!(service.handle(session, Request::Control(Control::Ping)), Reply::Done);
        assert!(matches!(service.handle(session, Request::Control(Control::Info)), Reply::Info(_)));
        let mut buffer = vec![0; BLOCK as usize];
        let cached = service.read_cached(session, Range::new(0, BLOCK), &mut buffer);
        assert_eq!(cached.unwrap().unwrap_err().kind, FailureKind::Fenced);
        assert_eq!(service.write(session, 0, &buffer).unwrap_err().kind, FailureKind::Fenced);
        assert!(service.may_flush(session).is_err());
    }
    assert_eq!(info(&service), before, "nothing of it had an effect");
    assert_eq!(service.handle(&owner, read()), block(1));
}

#[test]
fn a_newer_engine_fences_the_older_one_and_not_the_other_way_round() {
    let service = service();
    let (old, new) = (service.begin("vol"), service.begin("vol"));
    assert_eq!(open(&service, &old, 5), Reply::Done);
    assert_eq!(service.handle(&old, write(1)), Reply::Done);
    for stale in [0, 4, 5] {
        assert_failed(open(&service, &new, stale), FailureKind::Fenced);
    }
    assert_eq!(service.handle(&old, write(2)), Reply::Done, "a refused open fences nobody");
    assert_eq!(open(&service, &new, 6), Reply::Done);
    assert_failed(service.handle(&old, write(3)), FailureKind::Fenced);
    assert_failed(open(&service, &old, 6), FailureKind::Fenced);
    assert_eq!(service.handle(&new, read()), block(2));
    service.end(&old);
    assert_eq!(service.handle(&new, write(4)), Reply::Done, "the end of a fenced connection fences nobody");
}

#[test]
fn no_write_of_the_old_owner_lands_after_the_new_one_was_told() {
    let service = service();
    let old = service.begin("vol");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    service.handle(&old, write(1));
                }
            });
        }
        for round in 0..200 {
            assert_eq!(open(&service, &old, 2 * round + 1), Reply::Done);
            let new = service.begin("vol");
            assert_eq!(open(&service, &new, 2 * round + 2), Reply::Done);
            assert_eq!(service.handle(&new, write(2)), Reply::Done);
            for _ in 0..5 {
                assert_eq!(service.handle(&new, read()), block(2));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn opening_is_on_disk_before_it_is_answered() {
    let disk = Simulated::new();
    let first = on(Store::create(Arc::new(disk.clone()), CreateOptions::new(SIZE)).unwrap());
    let session = first.begin("vol");
    assert!(info(&first).clean);
    assert_eq!(open(&first, &session, 7), Reply::Done);
    drop(first);
    disk.crash(1);
    let second = on(Store::open(Arc::new(disk.clone()), OpenOptions::default()).unwrap());
    let found = info(&second);
    assert_eq!((found.membership.generation, found.clean), (Generation(7), false));
    assert!(second.belongs_to("vol") && !second.belongs_to("other"));
}

#[test]
fn closing_in_order_leaves_a_clean_volume_without_intents() {
    let disk = Simulated::new();
    let service = on(Store::create(Arc::new(disk.clone()), CreateOptions::new(SIZE)).unwrap());
    let session = service.begin("vol");
    assert_eq!(open(&service, &session, 1), Reply::Done);
    let intents = Control::Intents { set: vec![Regions(0, 2)], clear: Vec::new() };
    assert_eq!(service.handle(&session, Request::Control(intents)), Reply::Done);
    assert_eq!(info(&service).intents, vec![Regions(0, 2)]);
    assert_eq!(service.handle(&session, write(8)), Reply::Done);
    assert_eq!(service.handle(&session, Request::Control(Control::Close)), Reply::Done);
    assert_failed(service.handle(&session, write(9)), FailureKind::Fenced);
    drop(service);
    disk.crash(2);
    let service = on(Store::open(Arc::new(disk.clone()), OpenOptions::default()).unwrap());
    let found = info(&service);
    assert!(found.clean && found.membership.generation == Generation(1));
    let session = service.begin("vol");
    assert_eq!(open(&service, &session, 2), Reply::Done);
    assert!(!info(&service).clean, "from here on a crash leaves traces");
    assert_eq!(service.handle(&session, read()), block(8));
}

/// Copies every layer of one replica to another that has adopted its tree.
fn fill(from: (&Service, &Session), to: (&Service, &Session)) {
    for layer in info(from.0).layers {
        for offset in (0..layer.size).step_by(1 << 20) {
            let range = Range::new(offset, 1 << 20);
            let read = Control::LayerRead { layer: layer.id, range };
            let Reply::RunsWith(runs, data) = from.0.handle(from.1, Request::Control(read)) else {
                panic!("no runs")
            };
            let write = Control::LayerWrite { layer: layer.id, runs };
            assert_eq!(to.0.handle(to.1, Request::ControlWith(write, data)), Reply::Done);
        }
        let complete = Control::LayerComplete { layer: layer.id };
        assert_eq!(to.0.handle(to.1, Request::Control(complete)), Reply::Done);
    }
}

#[test]
fn a_rebuilt_replica_serves_when_the_membership_names_it_and_not_before() {
    let (source, target) = (service(), service());
    let (from, to) = (source.begin("vol"), target.begin("vol"));
    assert_eq!(open(&source, &from, 4), Reply::Done);
    assert_eq!(source.handle(&from, write(1)), Reply::Done);
    assert_eq!(source.handle(&from, Request::Control(snapshot("s"))), Reply::Done);
    let second = Request::Write { offset: BLOCK, data: vec![2; BLOCK as usize].into(), durable: true };
    assert_eq!(source.handle(&from, second), Reply::Done);

    assert_eq!(adopt(&to, &target, &info(&source), 4), Reply::Done);
    let begun = info(&target);
    assert!(begun.rebuilding && begun.membership.members.is_empty());
    for served in
        [read(), Request::Control(Control::Checksum { snapshot: None }), Request::Control(Control::Purge)]
    {
        assert_failed(target.handle(&to, served), FailureKind::Invalid);
    }
    assert_failed(open(&target, &to, 9), FailureKind::Invalid);
    let join = |generation| {
        let record = naming(&target, generation);
        target.handle(&to, Request::Control(Control::SetMembership { record }))
    };
    assert_failed(join(5), FailureKind::Invalid);
    assert!(info(&target).rebuilding, "an unfinished rebuild is not ended by naming it");

    fill((&source, &from), (&target, &to));
    assert_failed(join(4), FailureKind::Fenced);
    let others = Membership { generation: Generation(5), ..Membership::default() };
    let elsewhere = Control::SetMembership { record: others };
    assert_eq!(target.handle(&to, Request::Control(elsewhere)), Reply::Done);
    assert!(info(&target).rebuilding, "a record of others does not end it");
    assert_eq!(join(6), Reply::Done);
    let ended = info(&target);
    assert!(!ended.rebuilding && ended.membership.generation == Generation(6));
    assert_eq!(target.handle(&to, read()), block(1));
    let digest = |service: &Service, session: &Session, snapshot: Option<&str>| {
        let checksum = Control::Checksum { snapshot: snapshot.map(str::to_owned) };
        service.handle(session, Request::Control(checksum))
    };
    for at in [None, Some("s")] {
        assert_eq!(digest(&source, &from, at), digest(&target, &to, at));
    }
}

#[test]
fn snapshots_are_told_to_anybody_with_the_key_and_never_by_a_replica_under_rebuild() {
    let (source, target) = (service(), service());
    let (owner, reader) = (source.begin("vol"), source.begin("vol"));
    assert_eq!(open(&source, &owner, 4), Reply::Done);
    assert_eq!(source.handle(&owner, write(1)), Reply::Done);
    assert_eq!(source.handle(&owner, Request::Control(snapshot("s"))), Reply::Done);
    assert_eq!(source.handle(&owner, write(2)), Reply::Done);
    let before = info(&source);
    let of = |layer: &Layer, range, content| {
        let since = None;
        Request::Control(Control::SnapshotRead { layer: layer.id, since, range, content })
    };
    let (frozen, head) = (&before.layers[0], &before.layers[1]);
    assert!(frozen.snapshot.is_some() && head.id == before.head);
    let (data, hole) = (Range::new(0, BLOCK), Range::new(BLOCK, SIZE - BLOCK));
    let runs = vec![Run { range: data, kind: RunKind::Data }, Run { range: hole, kind: RunKind::Absent }];
    assert_eq!(source.handle(&reader, of(frozen, Range::new(0, SIZE), false)), Reply::Runs(runs.clone()));
    let content = Bytes::from(vec![1; BLOCK as usize]);
    assert_eq!(source.handle(&reader, of(frozen, data, true)), Reply::RunsWith(runs[..1].to_vec(), content));
    assert_eq!(info(&source), before, "looking changes nothing");

    assert_failed(source.handle(&reader, of(head, data, true)), FailureKind::Invalid);
    assert_failed(source.handle(&owner, of(head, data, false)), FailureKind::Invalid);
    for range in [Range::new(0, 2 << 20), Range::new(SIZE, BLOCK), Range::new(0, 0), Range::new(1, BLOCK)] {
        assert_failed(source.handle(&reader, of(frozen, range, true)), FailureKind::Invalid);
    }
    let with = Request::ControlWith(
        Control::SnapshotRead { layer: frozen.id, since: None, range: data, content: true },
        Bytes::from_static(b"x"),
    );
    assert_failed(source.handle(&reader, with), FailureKind::Invalid);

    let (to, other) = (target.begin("vol"), target.begin("vol"));
    assert_eq!(adopt(&to, &target, &before, 4), Reply::Done);
    fill((&source, &owner), (&target, &to));
    for session in [&to, &other] {
        assert_failed(target.handle(session, of(frozen, data, true)), FailureKind::Busy);
        assert_failed(target.handle(session, of(frozen, data, false)), FailureKind::Busy);
    }
    let record = naming(&target, 5);
    let joined = target.handle(&to, Request::Control(Control::SetMembership { record }));
    assert_eq!(joined, Reply::Done);
    assert!(matches!(target.handle(&other, of(frozen, data, true)), Reply::RunsWith(..)));
    let remove = Control::RemoveSnapshot { name: "s".into() };
    assert_eq!(target.handle(&to, Request::Control(remove)), Reply::Done);
    assert_failed(target.handle(&other, of(frozen, data, true)), FailureKind::NotFound);
}

#[test]
fn a_rebuild_that_was_cut_off_goes_on_and_an_older_one_does_not() {
    let disk = Simulated::new();
    let target = on(Store::create(Arc::new(disk.clone()), CreateOptions::new(SIZE)).unwrap());
    let source = service();
    let first = target.begin("vol");
    assert_eq!(adopt(&first, &target, &info(&source), 5), Reply::Done);
    drop(target);
    disk.crash(3);
    let target = on(Store::open(Arc::new(disk), OpenOptions::default()).unwrap());
    assert!(info(&target).rebuilding);
    let again = target.begin("vol");
    assert_failed(open(&target, &again, 100), FailureKind::Invalid);
    assert_failed(adopt(&again, &target, &info(&source), 4), FailureKind::Fenced);
    assert_eq!(adopt(&again, &target, &info(&source), 5), Reply::Done);
    let newer = target.begin("vol");
    assert_eq!(adopt(&newer, &target, &info(&source), 6), Reply::Done);
    let layer = info(&target).head;
    assert_failed(
        target.handle(&again, Request::Control(Control::LayerComplete { layer })),
        FailureKind::Fenced,
    );
}

#[test]
fn a_replica_in_sync_is_not_thrown_away_by_its_own_generation() {
    let service = service();
    let session = service.begin("vol");
    assert_eq!(open(&service, &session, 5), Reply::Done);
    assert_failed(adopt(&session, &service, &info(&service), 5), FailureKind::Fenced);
    assert!(!info(&service).rebuilding);
}

#[test]
fn a_tree_that_makes_no_sense_is_refused_and_changes_nothing() {
    let service = service();
    let (owner, other) = (service.begin("vol"), service.begin("vol"));
    assert_eq!(open(&service, &owner, 1), Reply::Done);
    let before = info(&service);
    let mut like = before.clone();
    like.layers[0].parent = Some(like.head);
    assert_failed(adopt(&other, &service, &like, 2), FailureKind::Invalid);
    like.layers.clear();
    assert_failed(adopt(&other, &service, &like, 2), FailureKind::Invalid);
    assert_eq!(info(&service), before);
    assert_eq!(service.handle(&owner, write(1)), Reply::Done);
}

#[test]
fn a_replica_belongs_to_the_volume_that_first_owned_it() {
    let service = service();
    assert!(service.belongs_to("one") && service.belongs_to("two"));
    let (one, two) = (service.begin("one"), service.begin("two"));
    assert_eq!(open(&service, &one, 1), Reply::Done);
    assert_failed(open(&service, &two, 2), FailureKind::Invalid);
    assert!(service.belongs_to("one") && !service.belongs_to("two"));
    assert_eq!(service.handle(&one, write(1)), Reply::Done, "the other one did not take it over");
}

#[test]
fn ranges_beyond_the_volume_and_absurd_lengths_are_refused() {
    let service = service();
    let session = service.begin("vol");
    assert_eq!(open(&service, &session, 1), Reply::Done);
    let far = Range::new(SIZE, BLOCK);
    let huge = Range::new(0, u64::MAX - BLOCK + 1);
    let odd = Range::new(1, BLOCK);
    let layer = info(&service).head;
    for range in [far, huge, odd, Range::new(0, 0)] {
        for request in [
            Request::Read { range },
            Request::Zero { range, allocate: true, durable: false },
            Request::Control(Control::LayerRuns { layer, range }),
            Request::Control(Control::LayerRead { layer, range }),
            Request::Control(Control::LayerDigests { layer, range, chunk: BLOCK }),
            Request::Control(Control::Digests { range, chunk: BLOCK }),
            Request::Control(Control::Allocation { range }),
        ] {
            assert_failed(service.handle(&session, request), FailureKind::Invalid);
        }
    }
    for (offset, len) in [(SIZE, BLOCK), (1, BLOCK), (0, 100), (0, 0), (u64::MAX - 10, BLOCK)] {
        let data = vec![0; len as usize].into();
        let write = Request::Write { offset, data, durable: false };
        assert_failed(service.handle(&session, write), FailureKind::Invalid);
    }
    let beyond = Regions(SIZE / INTENT_REGION, 1);
    let intents = Control::Intents { set: vec![beyond], clear: Vec::new() };
    assert_failed(service.handle(&session, Request::Control(intents)), FailureKind::Invalid);
    assert_failed(
        service.handle(&session, Request::ControlWith(Control::Ping, Bytes::from_static(b"x"))),
        FailureKind::Invalid,
    );
}

#[test]
fn an_unnamed_stranger_in_the_record_is_kept_as_it_is() {
    let service = service();
    let session = service.begin("vol");
    let mut record = naming(&service, 1);
    record.members.push(Member {
        replica: ReplicaId::random(),
        address: "there".into(),
        boot: String::new(),
    });
    let open = Control::Open { engine: EngineId::random(), record: record.clone() };
    assert_eq!(service.handle(&session, Request::Control(open)), Reply::Done);
    assert_eq!(info(&service).membership, record);
}
