//! The engine at work: the core, its connections and whoever waits for answers, all on one thread, so that a request
//! crosses no thread and takes no lock. Adds sockets and a clock to the core and no rules of its own.

mod answers;
mod attention;
mod links;
mod volume;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use crate::engine::core::{Config, Engine};
use crate::engine::event::{Command, CommandError, CommandReply, Effect, Event, StopReason};
use crate::wire::key::Key;

use answers::Answers;
use attention::Attention;
use links::Links;

pub use volume::EngineVolume;

/// A running volume. Clones are the same volume; all stay on the thread that made the first.
#[derive(Clone)]
pub struct Running {
    shared: Rc<Shared>,
}

pub(crate) struct Shared {
    state: RefCell<State>,
    answers: Answers,
    links: Links,
    size: watch::Sender<u64>,
    life: watch::Sender<Life>,
    tick: Notify,
    attention: Attention,
    moved: Notify,
    clock: Instant,
}

struct State {
    core: Engine,
    effects: Vec<Effect>,
    next_command: u64,
    commands:
        std::collections::HashMap<u64, tokio::sync::oneshot::Sender<Result<CommandReply, CommandError>>>,
    tick_at: u64,
}

/// How far a volume is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Life {
    Starting,
    Ready,
    Stopped(StopReason),
}

impl Running {
    /// Begins to connect. Needs a current-thread runtime with a [`tokio::task::LocalSet`].
    pub fn start(config: Config, key: Key) -> Self {
        let (size, _) = watch::channel(config.size);
        let (life, _) = watch::channel(Life::Starting);
        let links = Links::new(config.volume.clone(), key, Duration::from_micros(config.replica_timeout));
        let core = Engine::new(config, 0);
        let state = State {
            core,
            effects: Vec::new(),
            next_command: 0,
            commands: std::collections::HashMap::new(),
            tick_at: 0,
        };
        let shared = Rc::new(Shared {
            state: RefCell::new(state),
            answers: Answers::default(),
            links,
            size,
            life,
            tick: Notify::new(),
            attention: Attention::default(),
            moved: Notify::new(),
            clock: Instant::now(),
        });
        let running = Self { shared };
        running.shared.clone().with_core(|core, _, out| core.start(out));
        tokio::task::spawn_local(keep_ticking(running.shared.clone()));
        tokio::task::spawn_local(stay_awake(running.shared.clone()));
        running
    }

    pub fn life(&self) -> watch::Receiver<Life> {
        self.shared.life.subscribe()
    }

    /// Ready, or the reason why it never will be.
    pub async fn ready(&self) -> Result<(), StopReason> {
        let mut life = self.life();
        loop {
            match &*life.borrow_and_update() {
                Life::Starting => {}
                Life::Ready => return Ok(()),
                Life::Stopped(reason) => return Err(reason.clone()),
            }
            if life.changed().await.is_err() {
                return Err(StopReason::Closed);
            }
        }
    }

    pub async fn command(&self, command: Command) -> Result<CommandReply, CommandError> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        let id = {
            let mut state = self.shared.state.borrow_mut();
            state.next_command += 1;
            let id = state.next_command;
            state.commands.insert(id, answer);
            id
        };
        self.shared.apply(Event::Command { id, command });
        answered.await.unwrap_or_else(|_| Err(CommandError::Failed("the engine ended".to_string())))
    }

    pub fn volume(&self) -> EngineVolume {
        EngineVolume::new(self.shared.clone())
    }
}

impl Shared {
    fn now(&self) -> u64 {
        self.clock.elapsed().as_micros() as u64
    }

    pub(crate) fn apply(self: &Rc<Self>, event: Event) {
        self.with_core(|core, now, out| core.apply(now, event, out));
    }

    pub(crate) fn apply_all(self: &Rc<Self>, events: impl Iterator<Item = Event>) {
        self.with_core(|core, now, out| {
            for event in events {
                core.apply(now, event, out);
            }
        });
    }

    fn with_core(self: &Rc<Self>, work: impl FnOnce(&mut Engine, u64, &mut Vec<Effect>)) {
        let now = self.now();
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let mut effects = std::mem::take(&mut state.effects);
        work(&mut state.core, now, &mut effects);
        self.attention.moved(now, state.core.in_flight());
        if self.attention.is_worth_it(now) {
            self.moved.notify_one();
        }
        let next = state.core.next_tick();
        if next < state.tick_at || state.tick_at <= now {
            state.tick_at = next;
            self.tick.notify_one();
        }
        for effect in effects.drain(..) {
            self.carry_out(effect, &mut state.commands);
        }
        self.links.batch_ends();
        state.effects = effects;
    }

    /// Never calls back into the core: whoever is woken runs later.
    fn carry_out(
        self: &Rc<Self>,
        effect: Effect,
        commands: &mut std::collections::HashMap<
            u64,
            tokio::sync::oneshot::Sender<Result<CommandReply, CommandError>>,
        >,
    ) {
        match effect {
            Effect::Answer { id, result } => self.answers.give(id, result),
            Effect::Send { link, id, request } => self.links.send(link, id, &request),
            Effect::Disconnect { link } => self.links.close(link),
            Effect::Dial { link, address } => Links::dial(self, link, &address),
            Effect::CommandDone { id, result } => {
                if let Some(waiting) = commands.remove(&id) {
                    // Whoever asked may be gone; the command was carried out all the same.
                    drop(waiting.send(result));
                }
            }
            Effect::Ready => {
                self.life.send_replace(Life::Ready);
            }
            Effect::Resized { size } => {
                self.size.send_replace(size);
            }
            Effect::Stopped { reason } => {
                self.life.send_replace(Life::Stopped(reason));
            }
        }
    }
}

/// Keeps the thread from sleeping as long as that is worth it. Yielding makes the runtime look at the sockets, and lets
/// others have the processor if they wait for it.
async fn stay_awake(shared: Rc<Shared>) {
    loop {
        shared.moved.notified().await;
        while shared.attention.is_worth_it(shared.now()) {
            std::thread::yield_now();
            tokio::task::yield_now().await;
        }
    }
}

async fn keep_ticking(shared: Rc<Shared>) {
    loop {
        let due = shared.state.borrow().tick_at;
        let at = shared.clock + Duration::from_micros(due);
        tokio::select! {
            () = tokio::time::sleep_until(at.into()) => {}
            () = shared.tick.notified() => continue,
        }
        if matches!(*shared.life.borrow(), Life::Stopped(_)) {
            return;
        }
        shared.apply(Event::Tick);
    }
}
