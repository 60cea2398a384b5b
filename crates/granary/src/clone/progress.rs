//! How far it is: one line that changes on a terminal, a line of the log now and then elsewhere.

use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::rc::Rc;
use std::time::Duration;

use granary_block::size;
use tokio::time::Instant;

const ON_TERMINAL: Duration = Duration::from_millis(200);
const IN_LOG: Duration = Duration::from_secs(5);

/// Tells by itself, from time to time, until it is dropped.
pub struct Progress {
    state: Rc<State>,
    task: tokio::task::JoinHandle<()>,
}

struct State {
    what: &'static str,
    done: Cell<u64>,
    total: u64,
    began: Instant,
    terminal: bool,
}

impl Progress {
    pub fn start(what: &'static str, total: u64) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let state = Rc::new(State { what, done: Cell::new(0), total, began: Instant::now(), terminal });
        let teller = state.clone();
        let task = tokio::task::spawn_local(async move {
            loop {
                tokio::time::sleep(if terminal { ON_TERMINAL } else { IN_LOG }).await;
                teller.tell();
            }
        });
        Self { state, task }
    }

    pub fn add(&self, bytes: u64) {
        self.state.done.set(self.state.done.get() + bytes);
    }

    /// The last word.
    pub fn finish(self) {
        self.state.tell();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.task.abort();
        if self.state.terminal {
            eprintln!();
        }
    }
}

impl State {
    fn tell(&self) {
        let (done, total) = (self.done.get(), self.total);
        let percent = done * 100 / total.max(1);
        if self.terminal {
            let seconds = self.began.elapsed().as_secs_f64().max(0.001);
            let rate = size::show((done as f64 / seconds) as u64);
            // A terminal that is gone is no reason to stop.
            write!(std::io::stderr(), "\r\x1b[K{} {percent}% of {}, {rate}/s", self.what, size::show(total))
                .ok();
        } else {
            tracing::info!(done, total, percent, "{}", self.what);
        }
    }
}
