//! Questions and answers about one snapshot, many in flight. When a replica goes away the next one is asked what it
//! left open: all replicas say the same of a snapshot, so nobody further up notices.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::chunk::{Chunk, Question};
use super::error::{Problem, Problems, ReaderError};
use super::source::{Source, Standing};
use crate::ids::LayerId;
use crate::wire::connection::Connection;
use crate::wire::message::{Layer, Reply, Request};

/// A replica that says nothing for this long while it is asked something counts as gone.
const SILENCE: Duration = Duration::from_secs(20);

/// How long to wait for any replica to come back: a restart, not a repair.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(500);

/// How often, for each replica, a question may come to nothing in a row.
const ATTEMPTS: usize = 2;

pub(super) struct Exchange {
    source: Source,
    snapshot: String,
    pub standing: Standing,
    /// Which replica is asked, and the way there while it is open.
    at: usize,
    connection: Option<Connection>,
    /// The replicas that have had the snapshot. When one of them has it no more, it was removed.
    holders: BTreeSet<usize>,
    /// By number, oldest first. Whoever is asked next hears them in this order.
    open: BTreeMap<u64, Question>,
    answers: HashMap<u64, Chunk>,
    next: u64,
    /// Since the last answer.
    failures: usize,
    problems: Problems,
}

impl Exchange {
    /// Asks all replicas at once who has the snapshot. Those that have it must mean the same layer by its name.
    pub async fn begin(source: Source, snapshot: &str) -> Result<Self, ReaderError> {
        let mut dialling = JoinSet::new();
        for (number, address) in source.replicas.iter().cloned().enumerate() {
            let (source, name) = (source.clone(), snapshot.to_owned());
            dialling.spawn(async move {
                let named = |layer: &Layer| layer.snapshot.as_ref().is_some_and(|it| it.name == name);
                (number, source.connect(&address, named).await)
            });
        }
        let mut found = BTreeMap::new();
        let mut problems = Problems::default();
        for (number, outcome) in dialling.join_all().await {
            match outcome {
                Ok(ready) => {
                    found.insert(number, ready);
                }
                Err(problem) => problems.note(&source.replicas[number], problem),
            }
        }
        let (volume, snapshot) = (source.volume.clone(), snapshot.to_owned());
        let mut layers = found.values().map(|(_, standing)| standing.layer);
        let first = layers.next();
        if layers.any(|layer| Some(layer) != first) {
            let said = |(number, (_, standing)): (&usize, &(_, Standing))| {
                format!("{} at {}", standing.layer, source.replicas[*number])
            };
            let said = found.iter().map(said).collect::<Vec<_>>().join(", ");
            return Err(ReaderError::Disagreement { volume, snapshot, said });
        }
        let holders = found.keys().copied().collect();
        let Some((at, (connection, standing))) = found.pop_first() else {
            return Err(if problems.any(|problem| matches!(problem, Problem::NoSnapshot)) {
                ReaderError::NotFound { volume, snapshot, problems }
            } else {
                ReaderError::Unavailable { volume, snapshot, problems }
            });
        };
        for (address, problem) in &problems.0 {
            tracing::warn!(replica = %address, %problem, "not read from");
        }
        Ok(Self {
            source,
            snapshot,
            standing,
            at,
            connection: Some(connection),
            holders,
            open: BTreeMap::new(),
            answers: HashMap::new(),
            next: 0,
            failures: 0,
            problems,
        })
    }

    /// The number by which the answer can be had. It leaves with the next wait for any answer.
    pub fn ask(&mut self, question: Question) -> u64 {
        let id = self.next;
        self.next += 1;
        self.open.insert(id, question);
        if let Some(connection) = &mut self.connection {
            queue(connection, self.standing.layer, id, question);
        }
        id
    }

    /// Waits for one answer; others that come meanwhile are kept. May be dropped and called again.
    pub async fn answer(&mut self, id: u64) -> Result<Chunk, ReaderError> {
        loop {
            if let Some(chunk) = self.answers.remove(&id) {
                return Ok(chunk);
            }
            if self.connection.is_none() {
                self.connect_anew().await?;
            }
            if let Err(problem) = self.listen().await {
                self.give_up(problem)?;
            }
        }
    }

    /// Nobody waits for any answer any more.
    pub fn forget(&mut self) {
        self.open.clear();
        self.answers.clear();
    }

    async fn listen(&mut self) -> Result<(), Problem> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let mut replies = Vec::new();
        let heard = timeout(SILENCE, async {
            connection.sender.flush().await?;
            connection.receiver.receive(&mut replies).await
        })
        .await;
        for (id, reply) in replies {
            self.take(id, reply)?;
        }
        match heard {
            Ok(heard) => heard.map_err(Problem::Lost),
            Err(_) => Err(Problem::Silent(SILENCE)),
        }
    }

    fn take(&mut self, id: u64, reply: Reply) -> Result<(), Problem> {
        if let Some(question) = self.open.get(&id) {
            let chunk = question.answered(reply)?;
            self.open.remove(&id);
            self.answers.insert(id, chunk);
            self.failures = 0;
        }
        Ok(())
    }

    fn give_up(&mut self, problem: Problem) -> Result<(), ReaderError> {
        let address = &self.source.replicas[self.at];
        tracing::warn!(replica = %address, %problem, "reading goes on with the next replica");
        self.connection = None;
        self.failures += 1;
        self.problems.note(address, problem);
        if self.failures > ATTEMPTS * self.source.replicas.len() { Err(self.unavailable()) } else { Ok(()) }
    }

    /// Finds a replica that has the snapshot, beginning with the next one and ending with the one that was lost.
    async fn connect_anew(&mut self) -> Result<(), ReaderError> {
        let since = Instant::now();
        loop {
            let (lost, count) = (self.at, self.source.replicas.len());
            let mut removed = false;
            for at in (1..=count).map(|step| (lost + step) % count) {
                match self.try_replica(at).await {
                    Ok(()) => return Ok(()),
                    Err(problem) => {
                        removed |= matches!(problem, Problem::NoSnapshot) && self.holders.contains(&at);
                        self.problems.note(&self.source.replicas[at], problem);
                    }
                }
            }
            if removed {
                let (volume, snapshot) = (self.source.volume.clone(), self.snapshot.clone());
                return Err(ReaderError::Removed { volume, snapshot });
            }
            self.judge(since.elapsed() < PATIENCE)?;
            sleep(PAUSE).await;
        }
    }

    async fn try_replica(&mut self, at: usize) -> Result<(), Problem> {
        let layer = self.standing.layer;
        let (mut connection, standing) =
            self.source.connect(&self.source.replicas[at], |it| it.id == layer).await?;
        let bases = self.open.values().filter_map(|question| question.since);
        if let Some(missing) = bases.into_iter().find(|since| !standing.stands_on(*since)) {
            return Err(Problem::NoBase(missing));
        }
        for (id, question) in &self.open {
            queue(&mut connection, layer, *id, *question);
        }
        self.connection = Some(connection);
        self.standing = standing;
        self.at = at;
        self.holders.insert(at);
        Ok(())
    }

    /// Whether it makes sense to go on looking, after nobody could be found.
    fn judge(&mut self, patient: bool) -> Result<(), ReaderError> {
        let missing = self.problems.0.iter().find_map(|(_, problem)| match problem {
            Problem::NoBase(since) => Some(*since),
            _ => None,
        });
        if let Some(since) = missing {
            return Err(ReaderError::NotBelow { snapshot: self.snapshot.clone(), since });
        }
        if patient && self.problems.any(Problem::is_temporary) { Ok(()) } else { Err(self.unavailable()) }
    }

    fn unavailable(&mut self) -> ReaderError {
        ReaderError::Unavailable {
            volume: self.source.volume.clone(),
            snapshot: self.snapshot.clone(),
            problems: std::mem::take(&mut self.problems),
        }
    }

    pub fn snapshot(&self) -> &str {
        &self.snapshot
    }
}

fn queue(connection: &mut Connection, layer: LayerId, id: u64, question: Question) {
    let request = Request::Control(question.of(layer));
    connection.sender.queue(id, &request);
}
