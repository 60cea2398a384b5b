//! Answers that go on for a while: changes of processes, and logs. They end when the instance manager does.

use std::pin::Pin;

use futures::{Stream, StreamExt, stream};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tonic::Status;

use crate::process::{Registry, View, read_log};

pub type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// How many lines wait for a slow reader; whoever reads the log waits with them.
const LINES: usize = 64;

/// Every change of every process. A watcher that cannot keep up misses none of what came last.
pub fn changes<T: Send + 'static>(
    registry: Registry,
    tell: impl Fn(View) -> T + Send + 'static,
) -> Answers<T> {
    let changes = registry.watch();
    let closing = registry.closing();
    let views =
        stream::unfold((registry, changes, Vec::new()), |(registry, mut changes, mut behind)| async move {
            loop {
                if let Some(view) = behind.pop() {
                    return Some((view, (registry, changes, behind)));
                }
                match changes.recv().await {
                    Ok(view) => return Some((view, (registry, changes, behind))),
                    Err(RecvError::Lagged(_)) => behind = registry.list(),
                    Err(RecvError::Closed) => return None,
                }
            }
        });
    views.take_until(closing.cancelled_owned()).map(move |view| Ok(tell(view))).boxed()
}

/// The lines of a log as it is now.
pub fn lines<T: Send + 'static>(
    registry: &Registry,
    name: &str,
    tell: impl Fn(String) -> T + Send + 'static,
) -> Result<Answers<T>, Status> {
    let path = registry.log_file(name)?;
    let (sender, receiver) = mpsc::channel(LINES);
    tokio::task::spawn_blocking(move || {
        let done = read_log(&path, |line| sender.blocking_send(Ok(tell(line))).is_ok());
        if let Err(error) = done {
            // The reader may have gone.
            sender.blocking_send(Err(Status::internal(format!("the log cannot be read: {error}")))).ok();
        }
    });
    let lines =
        stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) });
    Ok(lines.take_until(registry.closing().cancelled_owned()).boxed())
}
