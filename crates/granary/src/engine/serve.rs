//! The life of an engine process: open the volume, serve it, and end in order, by fencing, or by handing over.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, bail};
use granary_block::engine::event::StopReason;
use granary_block::engine::runtime::{Life, Running};
use granary_block::engine::{Command, Config};
use granary_block::wire::key::Key;
use granary_enginectl::{Reached, SnapshotLimits};
use granary_frontend::{FrontendSpec, Frontends, FrozenFrontends, VolumeIdentity};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::arguments::EngineArgs;
use super::control::{Control, Order};
use super::handover::{self, Inherited};
use super::reach;
use super::volume::Served;

/// How long requests in flight may take to end before the volume is closed under them.
pub const LAST_REQUESTS: Duration = Duration::from_secs(10);
/// How long closing may take when replicas do not answer. What was flushed is safe without it.
const LAST_WORDS: Duration = Duration::from_secs(15);

pub struct Process<'a> {
    pub arguments: &'a EngineArgs,
    pub key: Key,
    pub identity: VolumeIdentity,
    pub control: Control,
    pub running: Running,
    pub frontends: Option<Frontends<Served>>,
    /// How those were asked for.
    pub specs: Vec<FrontendSpec>,
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    async fn any(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

pub async fn run(arguments: &EngineArgs) -> anyhow::Result<()> {
    let mut signals =
        Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? };
    let key = Key::read(&arguments.key_file)?;
    let inherited = match &arguments.takeover {
        Some(old) => Some(handover::take(arguments, old).await?),
        None => None,
    };
    let running = Running::start(arguments.config(), key.clone());
    let limits = SnapshotLimits { count: arguments.max_snapshots, bytes: arguments.max_snapshot_bytes };
    let control = Control::start(&arguments.control, running.clone(), limits, inherited.is_some()).await?;
    let identity = VolumeIdentity {
        name: arguments.volume.clone(),
        read_only: arguments.read_only,
        run_directory: arguments.run_dir.clone(),
    };
    let specs = arguments.frontends.clone();
    let mut process = Process { arguments, key, identity, control, running, frontends: None, specs };
    let opened = tokio::select! {
        opened = process.open(inherited) => opened,
        () = signals.any() => {
            tracing::info!("stopping before the volume was ready");
            return process.stop().await;
        }
    };
    if let Err(error) = opened {
        process.control.remove_socket();
        return Err(error);
    }
    process.announce();
    process.serve(&mut signals).await
}

impl Process<'_> {
    async fn open(&mut self, inherited: Option<Inherited>) -> anyhow::Result<()> {
        self.running.ready().await?;
        let volume = Served(self.running.volume());
        let specs = &self.specs;
        let (frontends, places) = match inherited {
            Some(inherited) => {
                (inherited.frontends.resume(specs, &self.identity, &volume).await?, inherited.places)
            }
            None => Frontends::start(specs, &self.identity, &volume).await?,
        };
        self.frontends = Some(frontends);
        self.reached(places);
        Ok(())
    }

    pub(super) fn reached(&self, places: Vec<String>) {
        let specs = self.specs.iter().map(ToString::to_string).collect();
        self.control.frontends.send_replace(Reached { specs, places });
    }

    /// Scripts wait for this line.
    fn announce(&self) {
        let places = self.control.frontends.borrow().places.join(",");
        let (volume, control) = (&self.arguments.volume, &self.control.address);
        let size = *self.running.volume().size().borrow();
        tracing::info!(volume, size, frontends = places, %control, "engine is ready");
        println!("ready volume={volume} size={size} frontends={places} control={control}");
    }

    async fn serve(mut self, signals: &mut Signals) -> anyhow::Result<()> {
        loop {
            let mut life = self.running.life();
            let order = tokio::select! {
                () = signals.any() => {
                    tracing::info!("stopping");
                    return self.stop().await;
                }
                reason = stopped(&mut life) => return self.ended(reason).await,
                order = self.control.orders.recv() => order,
            };
            match order {
                None => bail!("control has ended; this is a defect"),
                // Whoever asked may have hung up.
                Some(Order::StartFrontends { frontends, answer }) => {
                    drop(answer.send(reach::start(&mut self, &frontends).await));
                }
                Some(Order::StopFrontends { answer }) => drop(answer.send(reach::stop(&mut self).await)),
                Some(Order::Close { answer }) => {
                    tracing::info!("stopping, as control was asked to");
                    let stopped = self.stop().await;
                    let told = match &stopped {
                        Ok(()) => Ok(()),
                        Err(error) => Err(granary_block::engine::CommandError::Failed(format!("{error:#}"))),
                    };
                    // Whoever asked may have hung up; otherwise the answer needs a moment to leave.
                    if answer.send(told).is_ok() {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                    return stopped;
                }
                Some(Order::Handover { request, answer }) => {
                    if handover::give(&mut self, &request, answer).await? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Ends in order: users first, then the volume.
    async fn stop(mut self) -> anyhow::Result<()> {
        if let Some(frontends) = self.frontends.take() {
            let mut stopping = pin!(frontends.stop());
            if tokio::time::timeout(LAST_REQUESTS, &mut stopping).await.is_err() {
                tracing::warn!("requests in flight do not end; closing the volume under them");
                let closed = close(&self.running).await;
                tokio::time::timeout(LAST_REQUESTS, stopping).await.ok();
                self.control.remove_socket();
                return closed;
            }
        }
        let closed = close(&self.running).await;
        self.control.remove_socket();
        closed
    }

    /// The volume ended by itself.
    async fn ended(mut self, reason: StopReason) -> anyhow::Result<()> {
        if let Some(frontends) = self.frontends.take() {
            tokio::time::timeout(LAST_REQUESTS, frontends.stop()).await.ok();
        }
        self.control.remove_socket();
        match reason {
            StopReason::Closed => Ok(()),
            other => Err(other.into()),
        }
    }

    /// Opens the volume again and serves what was frozen, after a handover that came to nothing.
    pub async fn go_on(&mut self, frozen: FrozenFrontends) -> anyhow::Result<()> {
        // The size may have grown since the start.
        let config = Config { size: 0, ..self.arguments.config() };
        self.running = Running::start(config, self.key.clone());
        self.control.attend(self.running.clone());
        self.running.ready().await?;
        let volume = Served(self.running.volume());
        self.frontends = Some(frozen.resume(&self.specs, &self.identity, &volume).await?);
        Ok(())
    }
}

pub async fn close(running: &Running) -> anyhow::Result<()> {
    match tokio::time::timeout(LAST_WORDS, running.command(Command::Close)).await {
        Ok(closed) => closed.map(drop).context("not closed in order"),
        Err(_) => bail!(
            "the replicas did not confirm the end within {} s; what was flushed is safe, and the next start compares \
             what was not",
            LAST_WORDS.as_secs()
        ),
    }
}

async fn stopped(life: &mut tokio::sync::watch::Receiver<Life>) -> StopReason {
    loop {
        if let Life::Stopped(reason) = &*life.borrow_and_update() {
            return reason.clone();
        }
        if life.changed().await.is_err() {
            return StopReason::Closed;
        }
    }
}
