//! The threads for what may block. Each lane is a queue with threads of its own, so that a checksum of the whole
//! volume never stands before a read. Bounded by the budgets of the connections that feed it.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};

use super::counters::Counters;
use super::mailbox::{Done, Mailbox};
use super::service::{Service, Session};
use crate::wire::message::{Reply, Request};

/// Enough to keep a disk busy; more would only wait for two cores.
const READERS: usize = 8;

/// Snapshots and records are rare, and mostly wait for one another anyway.
const CONTROLLERS: usize = 2;

/// A request on its way through a lane.
pub struct Job {
    pub session: Arc<Session>,
    pub mailbox: Arc<Mailbox>,
    pub id: u64,
    pub work: Work,
    pub cost: usize,
}

pub enum Work {
    Handle(Request),
    /// Makes durable all that was carried out before; many share one.
    Flush,
    /// The connection is gone.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Reads from the disk and other short work.
    Quick,
    Control,
    /// Minutes.
    Long,
    Flush,
}

pub struct Lanes {
    quick: Arc<Queue>,
    control: Arc<Queue>,
    long: Arc<Queue>,
    flush: Arc<Queue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    closed: bool,
}

impl Lanes {
    pub fn start(service: &Arc<Service>, counters: &Arc<Counters>) -> std::io::Result<Self> {
        let mut lanes = Self {
            quick: Arc::default(),
            control: Arc::default(),
            long: Arc::default(),
            flush: Arc::default(),
            threads: Mutex::default(),
        };
        let threads = lanes.threads.get_mut();
        let worker = |queue: &Arc<Queue>| {
            let (queue, service) = (queue.clone(), service.clone());
            move || work(&queue, &service)
        };
        for _ in 0..READERS {
            threads.push(thread::Builder::new().name("replica-io".into()).spawn(worker(&lanes.quick))?);
        }
        for _ in 0..CONTROLLERS {
            threads.push(thread::Builder::new().name("replica-ctl".into()).spawn(worker(&lanes.control))?);
        }
        thread::Builder::new().name("replica-long".into()).spawn(worker(&lanes.long))?;
        let (queue, service, counters) = (lanes.flush.clone(), service.clone(), counters.clone());
        let flusher = move || flush(&queue, &service, &counters);
        threads.push(thread::Builder::new().name("replica-flush".into()).spawn(flusher)?);
        Ok(lanes)
    }

    pub fn submit(&self, lane: Lane, job: Job) {
        let queue = match lane {
            Lane::Quick => &self.quick,
            Lane::Control => &self.control,
            Lane::Long => &self.long,
            Lane::Flush => &self.flush,
        };
        queue.jobs.lock().waiting.push_back(job);
        queue.changed.notify_one();
    }

    /// Lets the threads finish what they are at and waits for them. What is still queued has nobody left to answer;
    /// a checksum may take minutes and changes nothing, so it is not waited for.
    pub fn stop(&self) {
        for queue in [&self.quick, &self.control, &self.long, &self.flush] {
            queue.jobs.lock().closed = true;
            queue.changed.notify_all();
        }
        for thread in self.threads.lock().drain(..) {
            if thread.join().is_err() {
                tracing::error!("a worker thread of the replica panicked");
            }
        }
    }
}

impl Queue {
    /// Waits for work; `None` when the lane is closed.
    fn next(&self) -> Option<Job> {
        self.when_any(VecDeque::pop_front).flatten()
    }

    /// Waits for work and takes all of it.
    fn take(&self) -> Option<VecDeque<Job>> {
        self.when_any(mem::take)
    }

    fn when_any<T>(&self, take: impl FnOnce(&mut VecDeque<Job>) -> T) -> Option<T> {
        let mut jobs = self.jobs.lock();
        while jobs.waiting.is_empty() && !jobs.closed {
            self.changed.wait(&mut jobs);
        }
        (!jobs.closed).then(|| take(&mut jobs.waiting))
    }
}

fn work(queue: &Queue, service: &Service) {
    while let Some(Job { session, mailbox, id, work, cost }) = queue.next() {
        let reply = match work {
            Work::Handle(request) => service.handle(&session, request),
            Work::Flush => service.handle(&session, Request::Flush),
            Work::End => {
                service.end(&session);
                continue;
            }
        };
        mailbox.post(Done { id, reply, cost });
    }
}

/// Requests that arrive while a flush runs share the next one: it begins after they came, so it covers all that was
/// answered before they were sent.
fn flush(queue: &Queue, service: &Service, counters: &Counters) {
    while let Some(jobs) = queue.take() {
        let flushed = service.store().flush();
        Counters::add(&counters.flushes_done, 1);
        let reply = match flushed {
            Ok(()) => Reply::Done,
            Err(error) => Reply::Failed(error.into()),
        };
        for Job { mailbox, id, cost, .. } in jobs {
            mailbox.post(Done { id, reply: reply.clone(), cost });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::disk::simulated::Simulated;
    use crate::store::{CreateOptions, Store};

    #[test]
    fn flushes_that_wait_together_share_one() {
        let store = Store::create(Arc::new(Simulated::new()), CreateOptions::new(1 << 20)).unwrap();
        let service = Arc::new(Service::new(Arc::new(store), Box::new(|task| task())));
        let (queue, counters, mailbox) =
            (Queue::default(), Counters::default(), Arc::new(Mailbox::default()));
        let session = Arc::new(service.begin("vol"));
        for id in 0..100 {
            let (session, mailbox) = (session.clone(), mailbox.clone());
            queue.jobs.lock().waiting.push_back(Job { session, mailbox, id, work: Work::Flush, cost: 0 });
        }
        let mut answers = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| flush(&queue, &service, &counters));
            while answers.len() < 100 {
                let mut done = Vec::new();
                mailbox.collect(&mut done, Waker::noop());
                answers.extend(done.into_iter().map(|done| done.reply));
            }
            queue.jobs.lock().closed = true;
            queue.changed.notify_all();
        });
        assert!(answers.iter().all(|reply| *reply == Reply::Done));
        assert_eq!(Counters::get(&counters.flushes_done), 1);
    }
}
