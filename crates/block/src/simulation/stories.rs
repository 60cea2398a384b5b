//! What happens in the simulated world, and what must hold at the end of every story.

use super::random::Random;
use super::world::World;
use crate::engine::{Command, CommandReply, Engine};
use crate::geometry::BLOCK;
use crate::wire::message::SnapshotSpec;

const BLOCKS: u64 = 48;

/// Seeds of every run; `GRANARY_SIM_SEEDS=FIRST..LAST` plays others, and one seed alone repeats a failure.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("GRANARY_SIM_SEEDS") else { return 0..usual };
    match text.split_once("..") {
        Some((first, last)) => first.parse().expect("a number")..last.parse().expect("a number"),
        None => {
            let seed = text.parse().expect("a number");
            seed..seed + 1
        }
    }
}

fn play(usual: u64, story: impl Fn(u64) + std::panic::RefUnwindSafe) {
    for seed in seeds(usual) {
        if let Err(panic) = std::panic::catch_unwind(|| story(seed)) {
            eprintln!("seed {seed} failed; GRANARY_SIM_SEEDS={seed} GRANARY_SIM_TRACE=1 tells its story");
            std::panic::resume_unwind(panic);
        }
    }
}

fn guest_step(world: &mut World) {
    if world.guest.in_flight() > 24 {
        return;
    }
    let blocks = world.guest.len();
    let first = world.random.below(blocks);
    let count = 1 + world.random.below(4.min(blocks - first));
    let request = match world.random.below(20) {
        0..=9 => {
            let durable = world.random.chance(5);
            world.guest.write(first, count, durable)
        }
        10 | 11 => {
            let allocate = world.random.chance(30);
            world.guest.zero(first, count, allocate)
        }
        12 | 13 => world.guest.flush(),
        _ => world.guest.read(first, count),
    };
    world.submit(request);
}

fn snapshot(name: String) -> Command {
    let created = jiff::Timestamp::from_second(1_700_000_000).expect("a time");
    Command::CreateSnapshot {
        snapshot: SnapshotSpec { name, created, user_created: true, labels: Default::default() },
    }
}

/// Heals everything, waits until all replicas are in sync, and checks that they are one volume.
fn settle(world: &mut World) {
    world.trouble = false;
    for at in 0..world.replicas.len() {
        world.replicas[at].cut_off = false;
        world.mend_disk(at);
        // A replica whose disk failed refuses to go on until somebody has looked and started it again.
        if world.lost_writes(at) {
            world.crash_replica(at, false);
        }
        world.start_replica(at);
    }
    // Whoever supervises an engine starts it again when it gave up.
    while !world.everybody_in_sync() {
        if world.engine().is_none() {
            world.start_engine();
        }
        world.run_until("every replica is in sync", |world| {
            world.engine().is_none() || world.everybody_in_sync()
        });
    }
    world.run_until("the guest's requests end", |world| world.guest.in_flight() == 0);
    let flush = world.guest.flush();
    world.submit(flush);
    world.run_until("the last flush ends", |world| world.guest.in_flight() == 0);
    for first in 0..world.guest.len() {
        let read = world.guest.read(first, 1);
        world.submit(read);
    }
    world.run_until("the last reads end", |world| world.guest.in_flight() == 0);
    world.run_until("every replica is still in sync", World::everybody_in_sync);
    world.run_until("nothing is written any more", |world| world.engine().is_some_and(Engine::is_still));
    agree(world, None);
    world.trouble = true;
}

fn agree(world: &World, snapshot: Option<&str>) -> String {
    let sums = world.checksums(snapshot);
    assert!(sums.windows(2).all(|pair| pair[0] == pair[1]), "replicas differ as of {snapshot:?}: {sums:?}");
    sums[0].clone()
}

fn chaos_step(world: &mut World, power: bool) {
    let replicas = world.replicas.len() as u64;
    let at = world.random.below(replicas) as usize;
    match world.random.below(12) {
        0 | 1 => {
            let power = power && world.random.chance(50);
            world.crash_replica(at, power);
        }
        2..=5 => {
            for at in 0..world.replicas.len() {
                world.start_replica(at);
            }
        }
        6 => world.break_connection(at),
        7 => world.replicas[at].cut_off = !world.replicas[at].cut_off,
        8 => {
            for replica in &mut world.replicas {
                replica.cut_off = false;
            }
        }
        9 => {
            world.crash_engine();
            world.start_engine();
        }
        10 if world.random.chance(30) => world.disk_trouble(at),
        10 if world.random.chance(50) => world.fill_disk(at),
        11 if world.random.chance(30) => (0..world.replicas.len()).for_each(|at| world.mend_disk(at)),
        _ => {
            if world.engine().is_none() {
                world.start_engine();
            }
        }
    }
}

/// The whole storm: every kind of failure, in any order, under load.
fn storm(seed: u64, power: bool) {
    let mut shape = Random::new(seed ^ 0xabcd);
    let replicas = 1 + shape.below(4) as usize;
    let mut world = World::new(seed, replicas, BLOCKS);
    world.min_in_sync = if replicas >= 3 && shape.chance(30) { 2 } else { 1 };
    world.start_engine();
    world.run_until("the first start", World::everybody_in_sync);
    for _ in 0..2 {
        for _ in 0..400 {
            if world.random.chance(40) {
                guest_step(&mut world);
            }
            if world.random.chance(3) {
                chaos_step(&mut world, power);
            }
            world.step();
        }
        settle(&mut world);
    }
    assert!(world.guest.reads_checked > 0 && world.guest.acknowledged > 0);
}

#[test]
fn processes_die_and_connections_break() {
    play(1000, |seed| storm(seed, false));
}

#[test]
fn machines_lose_power() {
    play(1500, |seed| storm(seed, true));
}

/// Snapshots under load and failures: the same on every replica, and never different later.
#[test]
fn snapshots_are_one_instant_and_never_change() {
    play(600, |seed| {
        let mut world = World::new(seed, 3, BLOCKS);
        world.start_engine();
        world.run_until("the first start", World::everybody_in_sync);
        let mut known: Vec<(String, Option<String>)> = Vec::new();
        for round in 0..3 {
            for step in 0..300 {
                if world.random.chance(40) {
                    guest_step(&mut world);
                }
                if step % 60 == 30 && world.engine().is_some() {
                    let name = format!("s{round}-{step}");
                    world.command(snapshot(name.clone()));
                    known.push((name, None));
                }
                if world.random.chance(2) {
                    chaos_step(&mut world, true);
                }
                world.step();
            }
            settle(&mut world);
            if world.random.chance(50) && !known.is_empty() {
                let pick = world.random.below(known.len() as u64) as usize;
                let (name, _) = known.remove(pick);
                let id = world.command(Command::RemoveSnapshot { name });
                world.run_until("the removal", |world| world.commands.get(&id).is_none_or(Option::is_some));
                let id = world.command(Command::Purge);
                world.run_until("the purge", |world| world.commands.get(&id).is_none_or(Option::is_some));
                settle(&mut world);
            }
            let listed = listed(&mut world);
            known.retain(|(name, _)| listed.contains(name));
            for (name, sum) in &mut known {
                let now = agree(&world, Some(name));
                if let Some(before) = sum {
                    assert_eq!(*before, now, "snapshot {name} changed");
                }
                *sum = Some(now);
            }
        }
    });
}

fn listed(world: &mut World) -> Vec<String> {
    let id = world.command(Command::Status);
    world.run_until("the status", |world| world.commands.get(&id).is_some_and(Option::is_some));
    let Some(Some(Ok(CommandReply::Status(status)))) = world.commands.remove(&id) else {
        panic!("a status was asked for")
    };
    status
        .layers
        .into_iter()
        .filter(|layer| !layer.removed)
        .filter_map(|layer| layer.snapshot.map(|snapshot| snapshot.name))
        .collect()
}

/// A second engine takes the volume over; the first never has a write acknowledged again.
#[test]
fn an_older_engine_is_fenced() {
    play(600, |seed| {
        let mut world = World::new(seed, 3, BLOCKS);
        world.start_engine();
        world.run_until("the first start", World::everybody_in_sync);
        for _ in 0..100 {
            guest_step(&mut world);
            world.step();
        }
        let old = world.current;
        world.guest.abandoned();
        world.start_engine();
        for _ in 0..400 {
            if world.random.chance(30) {
                guest_step(&mut world);
            }
            world.step();
        }
        settle(&mut world);
        world.write_through(old);
        world.run_until("the first engine notices", |world| world.stopped.contains_key(&old));
    });
}

/// Nobody answers when the volume is closed: the engine ends all the same, and what was flushed is there later.
#[test]
fn an_engine_that_lost_everybody_can_be_closed() {
    play(40, |seed| {
        let mut world = World::new(seed, 2, BLOCKS);
        world.start_engine();
        world.run_until("the first start", World::everybody_in_sync);
        for _ in 0..60 {
            guest_step(&mut world);
            world.step();
        }
        let at_work = world.random.chance(50);
        if at_work {
            world.command(Command::Close);
        }
        for at in 0..2 {
            world.crash_replica(at, false);
        }
        for _ in 0..20 {
            world.step();
        }
        if !at_work {
            world.command(Command::Close);
        }
        let closed = world.current;
        world.run_until("the engine ends", |world| world.stopped.contains_key(&closed));
        settle(&mut world);
    });
}

/// A replica that was away gets what changed and nothing else.
#[test]
fn a_replica_that_was_away_gets_only_what_changed() {
    play(10, |seed| {
        let mut world = World::new(seed, 3, 4096);
        world.start_engine();
        world.run_until("the first start", World::everybody_in_sync);
        for first in (0..4096).step_by(4) {
            let write = world.guest.write(first, 4, false);
            world.submit(write);
            world.step();
        }
        settle(&mut world);
        let copied = |world: &mut World| {
            let id = world.command(Command::Metrics);
            match world.commands.remove(&id) {
                Some(Some(Ok(CommandReply::Metrics(metrics)))) => metrics.rebuild_bytes_copied,
                other => panic!("{other:?}"),
            }
        };
        let before = copied(&mut world);
        world.crash_replica(1, false);
        for _ in 0..40 {
            let first = world.random.below(4000);
            let write = world.guest.write(first, 2, false);
            world.submit(write);
        }
        world.run_until("the writes end", |world| world.guest.in_flight() == 0);
        settle(&mut world);
        let after = copied(&mut world) - before;
        assert!(after > 0 && after <= 80 * BLOCK, "copied {after} bytes for 80 blocks");
    });
}
