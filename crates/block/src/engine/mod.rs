//! The engine: keeps the replicas of one volume identical and serves it. The rules live in [`core`], a state machine
//! without I/O, clock or randomness: events go in, effects come out, and tests can play any history to it.

pub mod choose;
pub mod core;
pub mod event;
pub mod runtime;

mod answers;
mod assemble;
mod commands;
mod filling;
mod groups;
mod guest;
mod intents;
mod locks;
mod losses;
mod membership;
mod metrics;
mod parts;
mod place;
mod qos;
mod reconcile;
mod record;
mod resync;
mod scan;
mod slots;
mod table;
mod timers;
mod unflushed;

pub use self::core::{Config, Engine};
pub use event::{
    Answer, Command, CommandError, CommandReply, Effect, Event, GuestError, GuestId, GuestOp, Link,
};
pub use metrics::{Histogram, Metrics};
pub use slots::{MAX_SLOTS, Slot};
