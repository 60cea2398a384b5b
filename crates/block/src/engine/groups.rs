//! Questions to one or several replicas, and the barriers during which writes stand still. A group ends when everybody
//! asked has answered or is gone; what then follows depends on its purpose.

use crate::engine::core::{Engine, Phase, Todo};
use crate::engine::event::{Effect, StopReason};
use crate::engine::reconcile::ReconcileStep;
use crate::engine::resync::ResyncStep;
use crate::engine::slots::{Slot, SlotSet};
use crate::engine::table::{Entry, Table};
use crate::ids::LayerId;
use crate::wire::message::{Failure, FailureKind, Reply, Request, SnapshotSpec};

#[derive(Debug)]
pub struct Group {
    pub waiting: SlotSet,
    /// `None`: the replica went away before it answered.
    pub replies: Vec<(Slot, Option<Reply>)>,
    pub purpose: Purpose,
    pub wire: u64,
    pub sent: u64,
}

pub type Replies = Vec<(Slot, Option<Reply>)>;

#[derive(Debug)]
pub enum Purpose {
    Move,
    Opened,
    Marks,
    MarksCleared,
    Ping,
    Barrier,
    CloseFlush,
    CloseRecord,
    RemoveSnapshot { command: u64 },
    Purge { command: u64 },
    PurgePoll,
    Status { command: u64 },
    Verify { command: u64 },
    Allocation { guest: u64, offset: u64, len: u64 },
    Reconcile(ReconcileStep),
    Resync(u64, ResyncStep),
}

/// Something that needs all writes to have ended and none to begin.
#[derive(Debug)]
pub struct Barrier {
    pub command: u64,
    pub op: BarrierOp,
    pub running: bool,
}

#[derive(Clone, Debug)]
pub enum BarrierOp {
    Snapshot {
        snapshot: SnapshotSpec,
        new_head: LayerId,
    },
    Revert {
        name: String,
        new_head: LayerId,
    },
    Expand {
        size: u64,
    },
    /// A replica begins to get every write.
    Adopt {
        slot: Slot,
    },
    Verify {
        snapshot: Option<String>,
    },
    Close,
}

impl Engine {
    /// Sends one request to each of them.
    pub(super) fn ask(&mut self, slots: SlotSet, request: &Request, purpose: Purpose) {
        self.ask_each(&[(slots, request)], purpose);
    }

    pub(super) fn ask_one(&mut self, slot: Slot, request: &Request, purpose: Purpose) {
        self.ask([slot].into_iter().collect(), request, purpose);
    }

    /// Sends some of them one request and others another; all answers belong together.
    pub(super) fn ask_each(&mut self, requests: &[(SlotSet, &Request)], purpose: Purpose) {
        let waiting = requests.iter().fold(SlotSet::EMPTY, |all, (slots, _)| all.union(*slots));
        let key = self.table.insert(Entry::Group(Group {
            waiting,
            replies: Vec::new(),
            purpose,
            wire: 0,
            sent: self.now,
        }));
        let wire = self.table.wire_id(key);
        if let Some(group) = self.table.group(key) {
            group.wire = wire;
        }
        for (slots, request) in requests {
            for slot in slots.iter() {
                if let Some(link) = self.place(slot).link {
                    self.out.push(Effect::Send { link, id: wire, request: (*request).clone() });
                }
            }
        }
        if waiting.is_empty() {
            self.todo.push_back(Todo::Group(key));
        }
    }

    pub(super) fn group_reply(&mut self, key: usize, slot: Slot, reply: Reply) {
        if let Reply::Failed(failure) = &reply
            && failure.kind == FailureKind::Fenced
        {
            return self.fenced();
        }
        let Some(group) = self.table.group(key) else { return };
        if group.waiting.remove(slot) {
            group.replies.push((slot, Some(reply)));
            if group.waiting.is_empty() {
                self.todo.push_back(Todo::Group(key));
            }
        }
    }

    /// A newer engine has the replica. While still opening, the record may only have changed after it was asked for
    /// (a dead engine's last words): everybody is asked again, and the rules of a start decide anew.
    pub(super) fn fenced(&mut self) {
        if self.phase == Phase::Opening {
            self.gather_again();
        } else {
            self.stop(StopReason::Fenced);
        }
    }

    /// A replica left: nobody waits for its answers any more.
    pub(super) fn groups_without(&mut self, slot: Slot) {
        for key in self.table.keys() {
            if let Some(group) = self.table.group(key)
                && group.waiting.remove(slot)
            {
                group.replies.push((slot, None));
                if group.waiting.is_empty() {
                    self.todo.push_back(Todo::Group(key));
                }
            }
        }
    }

    pub(super) fn group_answered(&mut self, key: usize) {
        let Some(Entry::Group(group)) = take_group(&mut self.table, key) else { return };
        let replies = group.replies;
        match group.purpose {
            Purpose::Move => self.move_answered(&replies),
            Purpose::Opened => self.opened(replies),
            Purpose::Marks => self.marks_answered(&replies),
            Purpose::MarksCleared => self.marks_out = false,
            Purpose::Ping => {
                for (slot, _) in replies {
                    self.place(slot).pinged = false;
                }
            }
            Purpose::Barrier => self.barrier_answered(&replies),
            Purpose::CloseFlush => self.close_flushed(&replies),
            Purpose::CloseRecord => self.close_recorded(),
            Purpose::RemoveSnapshot { command } => self.changed_everywhere(command, &replies),
            Purpose::Purge { command } => self.purge_begun(command, &replies),
            Purpose::PurgePoll => self.purge_polled(&replies),
            Purpose::Status { command } => self.status_answered(command, replies),
            Purpose::Verify { command } => self.verify_answered(command, replies),
            Purpose::Allocation { guest, offset, len } => {
                self.allocation_answered(guest, offset, len, replies);
            }
            Purpose::Reconcile(step) => self.reconcile_answered(&step, replies),
            Purpose::Resync(run, step) => self.resync_answered(run, step, &replies),
        }
    }

    /// For changes that every replica must make alike: those in sync decide what happened, and whoever did otherwise
    /// has to leave. `Err` with the refusal when none of them did it.
    pub(super) fn same_everywhere(&mut self, replies: &Replies) -> Result<(), Option<Failure>> {
        let members = self.in_sync();
        let done = |reply: &Option<Reply>| matches!(reply, Some(Reply::Done));
        let happened = replies.iter().any(|(slot, reply)| members.contains(*slot) && done(reply));
        let mut refusal = None;
        for (slot, reply) in replies {
            match reply {
                Some(Reply::Failed(failure)) => {
                    if happened || failure.kind == FailureKind::Io {
                        self.fail(*slot, &format!("could not do what the others did: {failure}"));
                    }
                    refusal = Some(failure.clone());
                }
                Some(Reply::Done) if !happened => self.fail(*slot, "did what the replicas in sync did not"),
                _ => {}
            }
        }
        if happened { Ok(()) } else { Err(refusal) }
    }
}

fn take_group(table: &mut Table, key: usize) -> Option<Entry> {
    table.group(key)?;
    table.remove(key)
}
