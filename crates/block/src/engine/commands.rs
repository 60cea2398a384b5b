//! What operators and instance managers ask of a running volume, and the barriers some of it needs.

use crate::engine::core::{Engine, Phase};
use crate::engine::event::{Command, CommandError, CommandReply, Effect, ReplicaStatus, Status, StopReason};
use crate::engine::groups::{Barrier, BarrierOp, Purpose, Replies};
use crate::engine::place::{Place, Standing};
use crate::engine::slots::{MAX_SLOTS, Slot};
use crate::geometry::{BLOCK, MAX_VOLUME};
use crate::wire::message::{Control, Failure, FailureKind, ReplicaInfo, Reply, Request};

/// It is tried again when something has changed.
fn barrier_waits(barrier: &mut Option<Barrier>) {
    if let Some(barrier) = barrier {
        barrier.running = false;
    }
}

impl Engine {
    pub(super) fn command(&mut self, id: u64, command: Command) {
        self.commands.insert(id);
        let result = match command {
            Command::Status => self.status(id),
            Command::Metrics => Ok(Some(CommandReply::Metrics(Box::new(self.metrics.clone())))),
            Command::CreateSnapshot { snapshot } => {
                let new_head = self.new_layer();
                self.barrier(id, BarrierOp::Snapshot { snapshot, new_head })
            }
            Command::Revert { name } => self.revert(id, name),
            Command::RemoveSnapshot { name } => self.remove_snapshot(id, name),
            Command::Purge => self.purge(id),
            Command::Expand { size } => self.expand(id, size),
            Command::AddReplica { address } => self.add_replica(address),
            Command::RemoveReplica { address } => self.remove_replica(&address),
            Command::SetQos { iops, bandwidth } => {
                self.iops.set_rate(iops, self.now);
                self.bandwidth.set_rate(bandwidth, self.now);
                self.unthrottle();
                Ok(Some(CommandReply::Done))
            }
            Command::SetRebuildRate { bytes_per_second } => {
                self.rebuild_bucket.set_rate(bytes_per_second, self.now);
                Ok(Some(CommandReply::Done))
            }
            Command::Verify { snapshot } => self.barrier(id, BarrierOp::Verify { snapshot }),
            Command::Close => {
                self.closing = Some(id);
                if self.phase == Phase::Serving && !self.in_sync().is_empty() {
                    self.barrier(id, BarrierOp::Close)
                } else {
                    self.stop(StopReason::Closed);
                    Ok(None)
                }
            }
        };
        match result {
            Ok(None) => {}
            Ok(Some(reply)) => self.command_done(id, Ok(reply)),
            Err(error) => self.command_done(id, Err(error)),
        }
    }

    fn command_done(&mut self, id: u64, result: Result<CommandReply, CommandError>) {
        if self.commands.remove(&id) {
            self.out.push(Effect::CommandDone { id, result });
        }
    }

    pub(super) fn command_failed(&mut self, id: u64, why: &str) {
        self.out.push(Effect::CommandDone { id, result: Err(CommandError::Failed(why.to_string())) });
    }

    pub(super) fn fail_commands(&mut self, why: &str) {
        for id in std::mem::take(&mut self.commands) {
            if self.closing == Some(id)
                && self.phase == Phase::Stopped
                && why == StopReason::Closed.to_string()
            {
                self.out.push(Effect::CommandDone { id, result: Ok(CommandReply::Done) });
            } else {
                self.command_failed(id, why);
            }
        }
    }

    fn serving(&self) -> Result<(), CommandError> {
        if self.phase == Phase::Serving && !self.in_sync().is_empty() {
            return Ok(());
        }
        Err(CommandError::Busy(format!(
            "volume {} does not serve now; {}",
            self.config.volume,
            self.message()
        )))
    }

    fn barrier(&mut self, command: u64, op: BarrierOp) -> Result<Option<CommandReply>, CommandError> {
        if !matches!(op, BarrierOp::Close) {
            self.serving()?;
        }
        self.queued_barriers.push_back(Barrier { command, op, running: false });
        Ok(None)
    }

    fn not_rebuilding(&self, what: &str) -> Result<(), CommandError> {
        if self.resync.is_some() {
            return Err(CommandError::Busy(format!("{what} must wait until the rebuild has ended")));
        }
        Ok(())
    }

    fn revert(&mut self, id: u64, name: String) -> Result<Option<CommandReply>, CommandError> {
        self.not_rebuilding("a revert")?;
        let new_head = self.new_layer();
        self.barrier(id, BarrierOp::Revert { name, new_head })
    }

    fn remove_snapshot(&mut self, id: u64, name: String) -> Result<Option<CommandReply>, CommandError> {
        self.serving()?;
        let request = Request::Control(Control::RemoveSnapshot { name });
        self.ask(self.writers(), &request, Purpose::RemoveSnapshot { command: id });
        Ok(None)
    }

    fn purge(&mut self, id: u64) -> Result<Option<CommandReply>, CommandError> {
        self.serving()?;
        self.not_rebuilding("a purge")?;
        self.purging = true;
        self.purge_poll_at = self.now + 100_000;
        self.ask(self.in_sync(), &Request::Control(Control::Purge), Purpose::Purge { command: id });
        Ok(None)
    }

    fn expand(&mut self, id: u64, size: u64) -> Result<Option<CommandReply>, CommandError> {
        if !size.is_multiple_of(BLOCK) || size > MAX_VOLUME {
            let most = MAX_VOLUME >> 40;
            return Err(CommandError::Invalid(format!(
                "the size must be a multiple of {BLOCK} and at most {most} TiB"
            )));
        }
        if size < self.size {
            return Err(CommandError::Invalid(format!(
                "the volume has {} bytes and cannot shrink to {size}",
                self.size
            )));
        }
        if size == self.size {
            return Ok(Some(CommandReply::Done));
        }
        self.barrier(id, BarrierOp::Expand { size })
    }

    fn add_replica(&mut self, address: String) -> Result<Option<CommandReply>, CommandError> {
        if let Some(at) = self.places.iter().position(|place| place.address == address) {
            if !self.places[at].removed {
                return Err(CommandError::Exists(format!("the volume has a replica at {address} already")));
            }
            self.places[at] = Place::new(address);
            self.dial(Slot(at as u8));
            return Ok(Some(CommandReply::Done));
        }
        let at = match self.places.iter().position(|place| place.removed && place.link.is_none()) {
            Some(at) => at,
            None if self.places.len() < MAX_SLOTS => {
                self.places.push(Place::new(String::new()));
                self.places.len() - 1
            }
            None => return Err(CommandError::Invalid(format!("a volume has at most {MAX_SLOTS} replicas"))),
        };
        self.places[at] = Place::new(address);
        self.dial(Slot(at as u8));
        Ok(Some(CommandReply::Done))
    }

    fn remove_replica(&mut self, address: &str) -> Result<Option<CommandReply>, CommandError> {
        let found = self.places.iter().position(|place| place.address == address && !place.removed);
        let Some(at) = found else {
            return Err(CommandError::NotFound(format!("the volume has no replica at {address}")));
        };
        let slot = Slot(at as u8);
        let members = self.in_sync();
        if members.contains(slot) && members.len() == 1 {
            return Err(CommandError::Invalid(format!(
                "{address} is the only replica in sync; add another one first"
            )));
        }
        self.place(slot).removed = true;
        self.fail(slot, "removed");
        self.place(slot).redial_at = None;
        if !members.contains(slot) && !members.is_empty() {
            self.start_move(members);
        }
        Ok(Some(CommandReply::Done))
    }

    /// Begins the next barrier when writes stand still.
    pub(super) fn run_barrier(&mut self) -> bool {
        if self.barrier.is_none() {
            self.barrier = self.queued_barriers.pop_front();
            if self.barrier.is_none() {
                return false;
            }
        }
        let closing = self.barrier.as_ref().is_some_and(|barrier| matches!(barrier.op, BarrierOp::Close));
        if closing && self.in_sync().is_empty() {
            return self.close_alone();
        }
        let copying = self.resync.as_ref().is_some_and(|resync| resync.on_head > 0);
        // What is held is the same on every member already; it waits only for leave to be acknowledged.
        let held = self.held_changes();
        let ready =
            self.phase == Phase::Serving && self.moving.is_none() && self.changing == held && !copying;
        let Some(barrier) = &mut self.barrier else { return false };
        let ready = ready && (!closing || self.metrics.in_flight == 0);
        if barrier.running || !ready {
            return false;
        }
        barrier.running = true;
        let op = barrier.op.clone();
        let writers = self.writers();
        match op {
            BarrierOp::Adopt { slot } => self.adopt_now(slot),
            BarrierOp::Close => {
                self.ask(self.in_sync(), &Request::Flush, Purpose::CloseFlush);
            }
            BarrierOp::Verify { snapshot } => {
                let command = self.barrier.as_ref().map_or(0, |barrier| barrier.command);
                let request = Request::Control(Control::Checksum { snapshot });
                self.ask(self.in_sync(), &request, Purpose::Verify { command });
            }
            BarrierOp::Snapshot { snapshot, new_head } => {
                let request = Request::Control(Control::Snapshot { snapshot, new_head });
                self.ask(writers, &request, Purpose::Barrier);
            }
            BarrierOp::Revert { name, new_head } => {
                let request = Request::Control(Control::Revert { name, new_head });
                self.ask(writers, &request, Purpose::Barrier);
            }
            BarrierOp::Expand { size } => {
                self.ask(writers, &Request::Control(Control::Expand { size }), Purpose::Barrier);
            }
        }
        true
    }

    pub(super) fn end_barrier(&mut self) -> Option<Barrier> {
        self.barrier.take()
    }

    pub(super) fn barrier_answered(&mut self, replies: &Replies) {
        let outcome = self.same_everywhere(replies);
        let Some(barrier) = self.end_barrier() else { return };
        match outcome {
            Ok(()) => {
                match barrier.op {
                    BarrierOp::Snapshot { new_head, .. } | BarrierOp::Revert { new_head, .. } => {
                        self.head = Some(new_head);
                    }
                    BarrierOp::Expand { size } => {
                        self.size = size;
                        self.out.push(Effect::Resized { size });
                    }
                    BarrierOp::Adopt { .. } | BarrierOp::Close | BarrierOp::Verify { .. } => {}
                }
                self.command_done(barrier.command, Ok(CommandReply::Done));
            }
            Err(refusal) => self.command_done(barrier.command, Err(explain(refusal))),
        }
    }

    pub(super) fn changed_everywhere(&mut self, command: u64, replies: &Replies) {
        let result = match self.same_everywhere(replies) {
            Ok(()) => Ok(CommandReply::Done),
            Err(refusal) => Err(explain(refusal)),
        };
        self.command_done(command, result);
    }

    pub(super) fn purge_begun(&mut self, command: u64, replies: &Replies) {
        let refusal = replies.iter().find_map(|(_, reply)| match reply {
            Some(Reply::Failed(failure)) => Some(failure.clone()),
            _ => None,
        });
        match refusal {
            None => self.command_done(command, Ok(CommandReply::Done)),
            Some(failure) => self.command_done(command, Err(explain(Some(failure)))),
        }
    }

    pub(super) fn purge_polled(&mut self, replies: &Replies) {
        self.purge_asked = false;
        let running = replies.iter().any(|(_, reply)| match reply {
            Some(Reply::Info(info)) => info.purge.running,
            _ => false,
        });
        self.purging = running;
    }

    pub(super) fn verify_answered(&mut self, command: u64, replies: Replies) {
        self.end_barrier();
        let mut sums = Vec::new();
        for (slot, reply) in replies {
            match reply {
                Some(Reply::Checksum(sum)) => sums.push((self.places[slot.index()].address.clone(), sum)),
                Some(Reply::Failed(failure)) => {
                    return self.command_done(command, Err(explain(Some(failure))));
                }
                _ => {}
            }
        }
        self.command_done(command, Ok(CommandReply::Checksums(sums)));
    }

    pub(super) fn close_flushed(&mut self, replies: &Replies) {
        for (slot, reply) in replies {
            if reply.as_ref().is_some_and(|reply| *reply != Reply::Done) {
                self.fail(*slot, "could not flush at the end");
            }
        }
        if self.moving.is_some() || self.in_sync().is_empty() {
            // Somebody left on the way out: once that is recorded, the end is tried again.
            barrier_waits(&mut self.barrier);
            return;
        }
        self.ask(self.in_sync(), &Request::Control(Control::Close), Purpose::CloseRecord);
    }

    /// Nobody is left to flush to: the end waits for somebody to come back only as long as guests would.
    fn close_alone(&mut self) -> bool {
        let owed = self.changing > 0 || !self.unflushed.is_empty();
        if owed && !self.stall_expired {
            return false;
        }
        if owed {
            tracing::error!(volume = self.config.volume, "closed without a last flush: no replica answers");
        }
        self.stop(StopReason::Closed);
        true
    }

    pub(super) fn close_recorded(&mut self) {
        self.stop(StopReason::Closed);
    }

    fn status(&mut self, id: u64) -> Result<Option<CommandReply>, CommandError> {
        match self.in_sync().iter().next() {
            Some(slot) if self.phase == Phase::Serving => {
                self.ask_one(slot, &Request::Control(Control::Info), Purpose::Status { command: id });
                Ok(None)
            }
            _ => Ok(Some(CommandReply::Status(Box::new(self.status_with(None))))),
        }
    }

    pub(super) fn status_answered(&mut self, command: u64, replies: Replies) {
        let info = replies.into_iter().find_map(|(_, reply)| match reply {
            Some(Reply::Info(info)) => Some(info),
            _ => None,
        });
        let status = self.status_with(info);
        self.command_done(command, Ok(CommandReply::Status(Box::new(status))));
    }

    fn status_with(&self, info: Option<Box<ReplicaInfo>>) -> Status {
        let replicas =
            self.places.iter().enumerate().filter(|(_, place)| !place.removed).map(|(at, place)| {
                let rebuild = self.resync.as_ref().filter(|resync| resync.slot.index() == at);
                ReplicaStatus {
                    address: place.address.clone(),
                    replica: place.replica,
                    state: place.standing.name().to_string(),
                    reason: place.reason.clone(),
                    rebuild: rebuild.map(|resync| resync.status.clone()),
                    reads: place.reads,
                    writes: place.writes,
                }
            });
        let state = match self.phase {
            Phase::Gathering | Phase::Opening | Phase::Reconciling => "starting",
            Phase::Stopped => "stopped",
            Phase::Serving if !self.enough() => "stalled",
            Phase::Serving if self.places.iter().any(|p| !p.removed && p.standing != Standing::InSync) => {
                "degraded"
            }
            Phase::Serving => "serving",
        };
        Status {
            volume: self.config.volume.clone(),
            size: self.size,
            generation: self.record.generation,
            state: state.to_string(),
            message: self.message(),
            replicas: replicas.collect(),
            layers: info.as_ref().map(|info| info.layers.clone()).unwrap_or_default(),
            head: info.map(|info| info.head).or(self.head),
            purging: self.purging,
            iops_limit: self.iops.rate(),
            bandwidth_limit: self.bandwidth.rate(),
            rebuild_rate: self.rebuild_bucket.rate(),
        }
    }

    pub(super) fn message(&self) -> String {
        let away = self.who_is_away();
        if self.phase == Phase::Gathering && !self.refusal.is_empty() {
            return if away.is_empty() { self.refusal.clone() } else { format!("{}; {away}", self.refusal) };
        }
        away
    }

    fn who_is_away(&self) -> String {
        let missing: Vec<_> = self
            .places
            .iter()
            .filter(|place| !place.removed && place.standing == Standing::Away)
            .map(|place| format!("{} ({})", place.address, place.reason))
            .collect();
        if missing.is_empty() { String::new() } else { format!("replicas away: {}", missing.join(", ")) }
    }
}

fn explain(refusal: Option<Failure>) -> CommandError {
    let Some(failure) = refusal else {
        return CommandError::Failed(
            "every replica was lost before it answered; look at the status and try again".into(),
        );
    };
    match failure.kind {
        FailureKind::NotFound => CommandError::NotFound(failure.message),
        FailureKind::Exists => CommandError::Exists(failure.message),
        FailureKind::Invalid | FailureKind::ChainFull => CommandError::Invalid(failure.message),
        FailureKind::Busy => CommandError::Busy(failure.message),
        FailureKind::NoSpace | FailureKind::Io | FailureKind::Fenced => CommandError::Failed(failure.message),
    }
}
