//! The rules over a store: admits a request, carries it out, and says what came of it.
//! Synchronous, without clocks, randomness or the network, so that a simulation can stand where the server stands.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::limits;
use super::rules::{Need, Owner, Record, SessionId, need, refuse};
use crate::geometry::Range;
use crate::ids::LayerId;
use crate::store::Store;
use crate::wire::message::{Control, Failure, FailureKind, Layer, Membership, Reply, Request};

/// Work that outlives its request.
pub type Task = Box<dyn FnOnce() + Send>;

/// Runs such work: a server on a thread, a simulation when it sees fit.
pub type Background = Box<dyn Fn(Task) + Send + Sync>;

/// One replica, shared by all its connections.
pub struct Service {
    store: Arc<Store>,
    /// Held shared by whoever changes or reads the replica, alone by whoever takes it over: a connection that lost
    /// the replica cannot have a change under way when the next one is told that it owns it.
    owner: RwLock<Owner>,
    /// One change of the record at a time. Taken before `owner`.
    records: Mutex<()>,
    background: Background,
    sessions: AtomicU64,
}

/// One connection that has proved the volume's key.
#[derive(Clone, Debug)]
pub struct Session {
    id: SessionId,
    volume: String,
}

type Answer<T = Reply> = Result<T, Failure>;

impl Service {
    pub fn new(store: Arc<Store>, background: Background) -> Self {
        Self {
            store,
            owner: RwLock::default(),
            records: Mutex::default(),
            background,
            sessions: AtomicU64::default(),
        }
    }

    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// A new connection, for the volume it named in the handshake.
    pub fn begin(&self, volume: &str) -> Session {
        let id = SessionId(self.sessions.fetch_add(1, Ordering::Relaxed));
        Session { id, volume: volume.to_owned() }
    }

    /// The connection is gone. What it had under way comes to its end first.
    pub fn end(&self, session: &Session) {
        let mut owner = self.owner.write();
        if owner.session() == Some(session.id) {
            *owner = Owner::Nobody;
        }
    }

    /// Whether the replica is one of that volume, or nobody's yet.
    pub fn belongs_to(&self, volume: &str) -> bool {
        self.store.volume().is_none_or(|own| own == volume)
    }

    pub fn handle(&self, session: &Session, request: Request) -> Reply {
        self.try_handle(session, request).unwrap_or_else(Reply::Failed)
    }

    /// A read that needs no disk. `None`: it does, and [`Service::handle`] will do it.
    pub fn read_cached(&self, session: &Session, range: Range, into: &mut [u8]) -> Option<Answer<()>> {
        let owner = self.owner.read();
        if let Err(failure) = owner.admit_read(session.id) {
            return Some(Err(failure));
        }
        match self.store.read_cached(range, into) {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(error) => Some(Err(error.into())),
        }
    }

    /// A write that is not durable when it returns.
    pub fn write(&self, session: &Session, offset: u64, data: &[u8]) -> Answer<()> {
        let owner = self.owner.read();
        owner.admit_write(session.id)?;
        Ok(self.store.write(offset, data)?)
    }

    /// Whether the session may have its writes made durable; for a server that flushes for many at once.
    pub fn may_flush(&self, session: &Session) -> Answer<()> {
        self.owner.read().admit_write(session.id)
    }

    fn try_handle(&self, session: &Session, request: Request) -> Answer {
        match request {
            Request::Control(Control::Open { record, .. }) => self.open(session, record),
            Request::Control(Control::Adopt { record, size, layers, head, .. }) => {
                self.adopt(session, record, size, &layers, head)
            }
            Request::Control(Control::SetMembership { record }) => self.set_membership(session, record),
            Request::Control(Control::Close) => self.close(session),
            Request::Control(Control::Ping) => Ok(Reply::Done),
            Request::Control(Control::Info) => self.info(),
            request => {
                let owner = self.owner.read();
                owner.admit(session.id, need(&request), self.record())?;
                if !changes_replica(&request) {
                    drop(owner);
                    return self.carry_out(request);
                }
                let durable = matches!(
                    request,
                    Request::Write { durable: true, .. } | Request::Zero { durable: true, .. }
                );
                let reply = self.carry_out(request)?;
                drop(owner);
                if durable {
                    self.store.flush()?;
                }
                Ok(reply)
            }
        }
    }

    /// What an owner asked for. For what [`changes_replica`] the caller holds `owner` shared.
    fn carry_out(&self, request: Request) -> Answer {
        let store = &self.store;
        match request {
            Request::Read { range } => {
                let mut data = vec![0; limits::io(range, store.size())?];
                store.read_into(range, &mut data)?;
                return Ok(Reply::Data(data.into()));
            }
            Request::Write { offset, data, .. } => store.write(offset, &data)?,
            Request::Zero { range, allocate, .. } => store.zero(range, allocate)?,
            Request::Flush => store.flush()?,
            Request::Control(control) => return self.control(control),
            Request::ControlWith(Control::LayerWrite { layer, runs }, data) => {
                limits::runs(&runs)?;
                store.layer_write(layer, &runs, &data)?;
            }
            Request::ControlWith(..) => {
                return Err(refuse(FailureKind::Invalid, "the request carries content it has no use for"));
            }
        }
        Ok(Reply::Done)
    }

    fn control(&self, control: Control) -> Answer {
        let store = &self.store;
        match control {
            Control::Intents { set, clear } => {
                limits::regions(&set, store.size())?;
                limits::regions(&clear, store.size())?;
                if !set.is_empty() {
                    store.set_intents(&set)?;
                }
                if !clear.is_empty() {
                    store.clear_intents(&clear)?;
                }
            }
            Control::Snapshot { snapshot, new_head } => {
                limits::snapshot(&snapshot)?;
                store.snapshot(snapshot, new_head)?;
            }
            Control::RemoveSnapshot { name } => store.remove_snapshot(&name)?,
            Control::Revert { name, new_head } => store.revert(&name, new_head)?,
            Control::Purge => self.purge()?,
            Control::Expand { size } => store.expand(size)?,
            Control::LayerComplete { layer } => store.layer_complete(layer)?,
            Control::LayerWrite { layer, runs } => {
                limits::runs(&runs)?;
                store.layer_write(layer, &runs, &[])?;
            }
            Control::LayerRuns { layer, range } => {
                return limits::in_steps(range, store.size(), |step| store.layer_runs(layer, step))
                    .map(Reply::Runs);
            }
            Control::LayerRead { layer, range } => {
                limits::io(range, store.size())?;
                let (runs, data) = store.layer_read(layer, range)?;
                return Ok(Reply::RunsWith(runs, data));
            }
            Control::LayerDigests { layer, range, chunk } => {
                limits::digests(range, chunk, store.size())?;
                return Ok(Reply::Digests(store.layer_digests(layer, range, chunk)?));
            }
            Control::Digests { range, chunk } => {
                limits::digests(range, chunk, store.size())?;
                return Ok(Reply::Digests(store.digests(range, chunk)?));
            }
            Control::Allocation { range } => {
                return limits::in_steps(range, store.size(), |step| store.allocation(step)).map(Reply::Runs);
            }
            Control::SnapshotRead { layer, since, range, content: true } => {
                limits::io(range, store.size())?;
                let (runs, data) = store.snapshot_read(layer, since, range)?;
                return Ok(Reply::RunsWith(runs, data));
            }
            Control::SnapshotRead { layer, since, range, content: false } => {
                return limits::in_steps(range, store.size(), |step| store.snapshot_runs(layer, since, step))
                    .map(Reply::Runs);
            }
            Control::Checksum { snapshot } => {
                return Ok(Reply::Checksum(store.checksum(snapshot.as_deref())?));
            }
            Control::Ping
            | Control::Info
            | Control::Open { .. }
            | Control::Adopt { .. }
            | Control::SetMembership { .. }
            | Control::Close => unreachable!("they change who owns the replica, and were handled before"),
        }
        Ok(Reply::Done)
    }

    fn info(&self) -> Answer {
        let mut info = self.store.info()?;
        limits::coarsen(&mut info.intents);
        Ok(Reply::Info(Box::new(info)))
    }

    /// Folding goes on whoever owns the replica: it changes no content.
    fn purge(&self) -> Answer<()> {
        if self.store.purge_progress().running {
            return Err(refuse(
                FailureKind::Busy,
                "a purge is running; its progress is in the replica's info",
            ));
        }
        let store = self.store.clone();
        (self.background)(Box::new(move || {
            if let Err(error) = store.purge() {
                tracing::warn!(%error, "purge ended early; the next one goes on from there");
            }
        }));
        Ok(())
    }

    fn record(&self) -> Record {
        Record { generation: self.store.membership().generation, rebuilding: self.store.is_rebuilding() }
    }

    fn open(&self, session: &Session, record: Membership) -> Answer {
        let _alone = self.records.lock();
        let mut owner = self.owner.write();
        owner.admit(session.id, Need::Open(record.generation), self.record())?;
        limits::membership(&record)?;
        self.store.forgive_full_disk();
        self.claim(session)?;
        let generation = record.generation;
        self.store.set_membership(record, false, false)?;
        *owner = Owner::Serving(session.id);
        tracing::info!(volume = session.volume, %generation, "opened");
        Ok(Reply::Done)
    }

    /// 1. the replica has the new tree and says durably that it is not usable, in one step; a tree that is refused
    ///    changes nothing. 2. it remembers which generation fills it, so that an older engine cannot, and from whom.
    fn adopt(
        &self,
        session: &Session,
        record: Membership,
        size: u64,
        layers: &[Layer],
        head: LayerId,
    ) -> Answer {
        let _alone = self.records.lock();
        let mut owner = self.owner.write();
        owner.admit(session.id, Need::Adopt(record.generation), self.record())?;
        limits::membership(&record)?;
        limits::layers(layers)?;
        self.store.forgive_full_disk();
        self.claim(session)?;
        self.store.adopt(size, layers, head)?;
        *owner = Owner::Nobody;
        let generation = record.generation;
        self.store.set_membership(record, false, true)?;
        *owner = Owner::Filling(session.id);
        tracing::info!(volume = session.volume, %generation, layers = layers.len(), "rebuild begins");
        Ok(Reply::Done)
    }

    /// The owner's writes go on meanwhile; only the end of a rebuild stops them for a moment.
    fn set_membership(&self, session: &Session, record: Membership) -> Answer {
        let _alone = self.records.lock();
        let owner = self.owner.read();
        owner.admit(session.id, Need::Record(record.generation), self.record())?;
        limits::membership(&record)?;
        let info = self.store.info()?;
        let named = record.members.iter().any(|member| member.replica == info.replica);
        let ends_rebuild = info.rebuilding && named;
        if ends_rebuild && let Some(layer) = info.layers.iter().find(|layer| !layer.complete) {
            let message = format!("layer {} is not complete: the rebuild has not ended", layer.id);
            return Err(refuse(FailureKind::Invalid, &message));
        }
        let generation = record.generation;
        self.store.set_membership(record, false, info.rebuilding && !named)?;
        drop(owner);
        if ends_rebuild {
            let mut owner = self.owner.write();
            if *owner == Owner::Filling(session.id) {
                *owner = Owner::Serving(session.id);
            }
            tracing::info!(volume = session.volume, %generation, "rebuild ended, in sync");
        }
        Ok(Reply::Done)
    }

    fn close(&self, session: &Session) -> Answer {
        // Most of what must reach the disk does so before everybody else has to wait.
        {
            let owner = self.owner.read();
            owner.admit_read(session.id)?;
            self.store.flush()?;
        }
        let _alone = self.records.lock();
        let mut owner = self.owner.write();
        owner.admit_read(session.id)?;
        self.store.flush()?;
        let marked = self.store.intents();
        self.store.clear_intents(&marked)?;
        self.store.set_membership(self.store.membership(), true, false)?;
        *owner = Owner::Nobody;
        tracing::info!(volume = session.volume, "closed in order");
        Ok(Reply::Done)
    }

    /// The first engine that owns a replica gives it its volume.
    fn claim(&self, session: &Session) -> Answer<()> {
        match self.store.volume() {
            Some(own) if own == session.volume => Ok(()),
            Some(own) => {
                let message = format!("the replica belongs to volume {own}, not to {}", session.volume);
                Err(refuse(FailureKind::Invalid, &message))
            }
            None => Ok(self.store.set_volume(&session.volume)?),
        }
    }
}

/// The rest may go on for long and must not keep a new owner waiting; it harms nobody when it ends late.
fn changes_replica(request: &Request) -> bool {
    match request {
        Request::Write { .. } | Request::Zero { .. } | Request::ControlWith(..) => true,
        Request::Read { .. } | Request::Flush => false,
        Request::Control(control) => !matches!(
            control,
            Control::Purge
                | Control::LayerRuns { .. }
                | Control::LayerRead { .. }
                | Control::LayerDigests { .. }
                | Control::Digests { .. }
                | Control::Allocation { .. }
                | Control::SnapshotRead { .. }
                | Control::Checksum { .. }
        ),
    }
}

#[cfg(test)]
mod tests;
