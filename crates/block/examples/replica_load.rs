//! `replica_load [DIR [JOB]]`: 4 KiB reads and writes against one replica over loopback TCP and a unix socket, at depth 1 and
//! 32, with the CPU time that replica and engine side take for each. `PREFILL` is how
//! many bytes each write of the filling has. Only for measuring; never part of the product.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use granary_block::disk::directory::Directory;
use granary_block::geometry::{BLOCK, Range};
use granary_block::ids::{EngineId, Generation};
use granary_block::replica::counters::Counters;
use granary_block::replica::server::Server;
use granary_block::store::{CreateOptions, Store};
use granary_block::wire::address::Address;
use granary_block::wire::connection::Connection;
use granary_block::wire::key::Key;
use granary_block::wire::message::{Control, Member, Membership, Reply, Request};

const SIZE: u64 = 256 << 20;
const RUN: Duration = Duration::from_secs(2);
const DEADLINE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
enum Job {
    Read,
    Write,
    WriteFlush,
    BigRead,
    BigWrite,
}

impl Job {
    fn len(self) -> u64 {
        match self {
            Self::BigRead | Self::BigWrite => 1 << 20,
            _ => BLOCK,
        }
    }
}

fn main() -> anyhow::Result<()> {
    let base = std::env::args().nth(1).map_or_else(std::env::temp_dir, Into::into);
    let home = tempfile::tempdir_in(base)?;
    let key = Key::from_bytes(b"a key for measuring only")?;
    for listen in ["127.0.0.1:0".to_owned(), format!("unix://{}", home.path().join("r.sock").display())] {
        let directory = home.path().join(if listen.starts_with("unix") { "unix" } else { "tcp" });
        std::fs::create_dir(&directory)?;
        let (address, counters) = start(&directory, &listen.parse()?, &key)?;
        measure(&address, &key, &counters)?;
    }
    Ok(())
}

/// The replica on a thread of its own, so that its CPU time can be told apart.
fn start(directory: &Path, listen: &Address, key: &Key) -> anyhow::Result<(Address, Arc<Counters>)> {
    let store = Arc::new(Store::create(Arc::new(Directory::open(directory)?), CreateOptions::new(SIZE))?);
    let (listen, key) = (listen.clone(), key.clone());
    let (ready, wait) = std::sync::mpsc::channel();
    std::thread::Builder::new().name("replica".into()).spawn(move || -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let server = Server::bind(&listen, store, key).await?;
            ready.send((server.address().clone(), server.counters().clone()))?;
            server.run(std::future::pending()).await?;
            Ok(())
        })
    })?;
    wait.recv().context("the replica did not start")
}

fn measure(address: &Address, key: &Key, counters: &Counters) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (connection, info) = Connection::dial(address, "load", key, DEADLINE).await?;
        let mut engine = Engine { connection, next: 1, random: 88_172_645_463_325_252, replies: Vec::new() };
        let members = vec![Member { replica: info.replica, address: String::new(), boot: info.boot.clone() }];
        let record = Membership { generation: Generation(1), members, ..Membership::default() };
        engine.ask(&Request::Control(Control::Open { engine: EngineId::random(), record })).await?;
        let chunk = std::env::var("PREFILL").ok().and_then(|text| text.parse().ok()).unwrap_or(1usize << 20);
        let data = Bytes::from(vec![7; chunk]);
        for offset in (0..SIZE).step_by(chunk) {
            engine.ask(&Request::Write { offset, data: data.clone(), durable: false }).await?;
        }
        engine.ask(&Request::Flush).await?;
        println!("{address}");
        for (job, depth) in [
            (Job::Read, 1),
            (Job::Write, 1),
            (Job::WriteFlush, 1),
            (Job::Read, 32),
            (Job::Write, 32),
            (Job::BigRead, 8),
            (Job::BigWrite, 8),
        ] {
            if std::env::args().nth(2).is_some_and(|only| only != format!("{job:?}{depth}")) {
                continue;
            }
            let (cpu, batches) = (cpu_by_thread()?, Counters::get(&counters.batches));
            let started = Instant::now();
            let done = engine.run(job, depth).await?;
            let seconds = started.elapsed().as_secs_f64();
            let after = cpu_by_thread()?;
            let spent = |name: &str| {
                let of = |cpu: &BTreeMap<String, f64>| cpu.get(name).copied().unwrap_or_default();
                (of(&after) - of(&cpu)) / done as f64 * 1e6
            };
            println!(
                "  {job:?} depth {depth}: {:.0}/s, {:.1} us each; cpu us/op: replica {:.2}, lanes {:.2}, engine {:.2}; \
                 {:.1} requests a batch",
                done as f64 / seconds,
                seconds * 1e6 * f64::from(depth) / done as f64,
                spent("replica"),
                spent("replica-io") + spent("replica-flush"),
                spent("replica_load"),
                done as f64 / (Counters::get(&counters.batches) - batches).max(1) as f64,
            );
        }
        Ok(())
    })
}

struct Engine {
    connection: Connection,
    next: u64,
    random: u64,
    replies: Vec<(u64, Reply)>,
}

impl Engine {
    async fn ask(&mut self, request: &Request) -> anyhow::Result<()> {
        self.connection.sender.queue(0, request);
        self.connection.sender.flush().await?;
        self.connection.receiver.receive(&mut self.replies).await?;
        match self.replies.pop() {
            Some((_, Reply::Failed(failure))) => bail!(failure),
            _ => Ok(()),
        }
    }

    fn offset(&mut self, len: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % (SIZE / len) * len
    }

    fn queue(&mut self, job: Job, data: &Bytes) {
        let len = job.len();
        let range = Range::new(self.offset(len), len);
        let request = match job {
            Job::Read | Job::BigRead => Request::Read { range },
            Job::Write | Job::BigWrite => {
                Request::Write { offset: range.offset, data: data.clone(), durable: false }
            }
            Job::WriteFlush => Request::Write { offset: range.offset, data: data.clone(), durable: true },
        };
        self.connection.sender.queue(self.next, &request);
        self.next += 1;
    }

    async fn run(&mut self, job: Job, depth: u32) -> anyhow::Result<u64> {
        let data = Bytes::from(vec![9; job.len() as usize]);
        let started = Instant::now();
        for _ in 0..depth {
            self.queue(job, &data);
        }
        let (mut done, mut in_flight) = (0, u64::from(depth));
        while in_flight > 0 {
            self.connection.sender.flush().await?;
            self.connection.receiver.receive(&mut self.replies).await?;
            let more = started.elapsed() < RUN;
            for (_, reply) in std::mem::take(&mut self.replies) {
                ensure!(!matches!(reply, Reply::Failed(_)), "{reply:?}");
                done += 1;
                in_flight -= 1;
                if more {
                    self.queue(job, &data);
                    in_flight += 1;
                }
            }
        }
        Ok(done)
    }
}

/// Seconds of CPU time of this process's threads, added up by name.
fn cpu_by_thread() -> anyhow::Result<BTreeMap<String, f64>> {
    let mut spent = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        let name = std::fs::read_to_string(task.join("comm"))?.trim().to_owned();
        let stat = std::fs::read_to_string(task.join("schedstat"))?;
        let nanoseconds: f64 = stat.split(' ').next().unwrap_or_default().parse()?;
        *spent.entry(name).or_default() += nanoseconds / 1e9;
    }
    Ok(spent)
}
