//! The engine's ear: takes what the control API is asked, answers what the volume can, and passes on what ends the
//! process.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use granary_block::engine::CommandError;
use granary_block::engine::runtime::Running;
use granary_block::wire::address::Address;
use granary_enginectl::{Ask, ListenError, Listener, Reached, Service, SnapshotLimits, v1};
use tokio::sync::{mpsc, oneshot, watch};

/// What only the process as a whole can do.
pub enum Order {
    StartFrontends { frontends: Vec<String>, answer: Answer },
    StopFrontends { answer: Answer },
    Close { answer: Answer },
    Handover { request: v1::HandoverRequest, answer: Answer },
}

pub type Answer = oneshot::Sender<Result<(), CommandError>>;

pub struct Control {
    pub address: Address,
    pub orders: mpsc::Receiver<Order>,
    /// Where the volume is reached, once it is.
    pub frontends: watch::Sender<Reached>,
    running: Rc<RefCell<Running>>,
}

/// How long a port that the engine before still holds is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

impl Control {
    pub async fn start(
        address: &Address,
        running: Running,
        limits: SnapshotLimits,
        taken_over: bool,
    ) -> anyhow::Result<Self> {
        let listener = bind(address, taken_over).await?;
        let address = listener.address()?;
        let frontends = watch::Sender::new(Reached::default());
        let (service, asked) = Service::new(frontends.subscribe(), limits);
        let running = Rc::new(RefCell::new(running));
        let (sender, orders) = mpsc::channel(1);
        tokio::task::spawn_local(answer(asked, running.clone(), sender));
        tokio::task::spawn_local(async move {
            if let Err(error) = listener.serve(service).await {
                tracing::error!(%error, "control has ended");
            }
        });
        Ok(Self { address, orders, frontends, running })
    }

    /// From now on commands go to another run of the engine.
    pub fn attend(&self, running: Running) {
        self.running.replace(running);
    }

    /// The socket file of an engine that has ended would only mislead.
    pub fn remove_socket(&self) {
        if let Address::Unix(path) = &self.address
            && let Err(error) = std::fs::remove_file(path)
        {
            tracing::warn!(path = %path.display(), %error, "the control socket stays behind");
        }
    }
}

async fn bind(address: &Address, taken_over: bool) -> Result<Listener, ListenError> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        match Listener::bind(address, taken_over).await {
            Err(ListenError::Bind { source, .. })
                if taken_over
                    && source.kind() == std::io::ErrorKind::AddrInUse
                    && tokio::time::Instant::now() < deadline =>
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            other => return other,
        }
    }
}

async fn answer(mut asked: mpsc::Receiver<Ask>, running: Rc<RefCell<Running>>, orders: mpsc::Sender<Order>) {
    while let Some(ask) = asked.recv().await {
        let order = match ask {
            Ask::Command { command, answer } => {
                let running = running.borrow().clone();
                tokio::task::spawn_local(async move {
                    // Whoever asked may have hung up.
                    drop(answer.send(running.command(command).await));
                });
                continue;
            }
            Ask::StartFrontends { frontends, answer } => Order::StartFrontends { frontends, answer },
            Ask::StopFrontends { answer } => Order::StopFrontends { answer },
            Ask::Close { answer } => Order::Close { answer },
            Ask::Handover { request, answer } => Order::Handover { request, answer },
        };
        if let Err(refused) = orders.try_send(order) {
            let (Order::StartFrontends { answer, .. }
            | Order::StopFrontends { answer }
            | Order::Close { answer }
            | Order::Handover { answer, .. }) = refused.into_inner();
            let busy = "the engine is about to end, or to change how its volume is reached".to_owned();
            drop(answer.send(Err(CommandError::Busy(busy))));
        }
    }
}
