//! The volume as a block device of the kernel's ublk driver: requests come over an io_uring to the volume's own thread,
//! and their data is copied once.
//!
//! The driver keeps a device whose process is gone, and its users wait, until another process recovers it. That is how
//! a device is handed over, and why nobody notices that an engine was killed and started again.

mod abi;
mod control;
mod leftover;
mod nodes;
mod queue;
mod session;

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};

use self::abi::{Info, Parameters, SECTOR, State, attribute, feature};
use self::leftover::Leftover;
use self::queue::Queue;
use self::session::{Ended, serve};
use crate::Volume;
use crate::blocking::blocking;
use crate::orders::{Order, Orders};

/// How many requests users can have in flight.
const DEPTH: u16 = 128;
/// The largest read or write.
const MAX_IO: u32 = 1 << 20;
/// The largest piece that is discarded or zeroed at once: 1 GiB.
const MAX_ZERO_SECTORS: u32 = 1 << 21;
const PHYSICAL_BLOCK: u32 = 4096;
const NEEDED: u64 =
    feature::USER_RECOVERY | feature::USER_RECOVERY_REISSUE | feature::IOCTL_ENCODE | feature::USER_COPY;

/// Why a kernel's ublk cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("this kernel has no /dev/ublk-control; `modprobe ublk_drv` loads the driver where it is built")]
    NoDriver,
    #[error("/dev/ublk-control does not answer ({0}); it needs root, io_uring and Linux 6.5")]
    Silent(io::Error),
    #[error("the ublk driver is too old; it needs Linux 6.5")]
    TooOld,
}

#[derive(Debug, thiserror::Error)]
pub enum UblkError {
    #[error("{path} is this volume's device already and is served by process {process}; stop that one first")]
    Served { path: PathBuf, process: i32 },
    #[error("cannot {step} a ublk device: {source}")]
    Step { step: &'static str, source: io::Error },
}

/// What the device is to be like.
#[derive(Clone, Debug)]
pub struct UblkOptions {
    /// A path that only this volume has on this host; a device of the same one that a killed process left is recovered.
    pub identity: PathBuf,
    /// The logical one: 512 or 4096.
    pub block_size: u32,
    pub read_only: bool,
}

/// An attached device. Its end is [`Self::detach`] or [`Self::freeze`].
pub struct Ublk {
    device: u32,
    serving: Serving,
    resizer: AbortHandle,
}

/// The task that serves a device.
struct Serving {
    orders: Rc<Orders>,
    session: JoinHandle<(io::Result<Ended>, Queue)>,
}

/// A device whose users wait.
pub struct FrozenUblk {
    device: u32,
    /// In the process that served it. The driver lets another one have the device when this is closed, and expects the
    /// thread that served it to be gone by then: so it is closed by the end of the process, and by nothing else.
    queue: Option<Box<Queue>>,
}

/// Whether this kernel's ublk can be used; loads the driver if need be.
pub async fn probe() -> Result<(), Unusable> {
    if !blocking(|| Ok(nodes::ensure_control())).await.is_ok_and(|there| there) {
        return Err(Unusable::NoDriver);
    }
    match blocking(control::features).await {
        Ok(features) if features & NEEDED == NEEDED => Ok(()),
        Ok(_) => Err(Unusable::TooOld),
        Err(error) => Err(Unusable::Silent(error)),
    }
}

/// Removes what a killed process left of a volume that is now reached in another way; no driver, nothing left.
pub async fn clear(identity: &Path) -> Result<(), UblkError> {
    let mark = leftover::mark_of(identity);
    blocking(move || leftover::clear(mark)).await.map_err(step("remove"))
}

impl Ublk {
    /// Makes a device, or goes on with the one that a process which was killed left: its users do not notice.
    pub async fn attach<V: Volume>(volume: V, options: &UblkOptions) -> Result<Self, UblkError> {
        let parameters = options.parameters(*volume.size().borrow());
        let mark = leftover::mark_of(&options.identity);
        match blocking(move || leftover::take(mark, &parameters)).await.map_err(step("recover"))? {
            Leftover::None => Self::make(volume, mark, parameters).await,
            Leftover::Recovering(info) => Self::recover(volume, info).await,
            Leftover::Served(info) => {
                Err(UblkError::Served { path: nodes::block_node(info.device), process: info.process })
            }
        }
    }

    /// `/dev/ublkbN`.
    pub fn path(&self) -> PathBuf {
        nodes::block_node(self.device)
    }

    /// Writes what the kernel still holds and removes the device. Those who have it open or mounted get errors from
    /// then on; who wants it clean unmounts first.
    pub async fn detach(self) -> io::Result<()> {
        self.resizer.abort();
        let device = self.device;
        // Both wait for requests that the session answers.
        let stopped = blocking(move || {
            if let Err(error) =
                std::fs::File::open(nodes::block_node(device)).and_then(|node| node.sync_all())
            {
                tracing::warn!(device, %error, "not all that was written to a device is on the volume");
            }
            control::stop(device)
        })
        .await;
        // The device goes when nobody has its queue any more.
        let ended = self.serving.end(Order::Stop).await.map(drop);
        let removed = blocking(move || leftover::remove(device)).await;
        stopped.and(removed).and(ended)
    }

    /// Begins no more requests and lets those in flight end; the others wait in the kernel.
    pub async fn freeze(self) -> io::Result<FrozenUblk> {
        self.resizer.abort();
        match self.serving.end(Order::Freeze).await? {
            (Ended::Ordered, queue) => Ok(FrozenUblk { device: self.device, queue: Some(Box::new(queue)) }),
            (Ended::Stopped, _) => Err(io::Error::other(format!("/dev/ublkb{} was removed", self.device))),
        }
    }

    async fn make<V: Volume>(volume: V, mark: u64, parameters: Parameters) -> Result<Self, UblkError> {
        let wanted = Info {
            depth: DEPTH,
            state: State::Dead,
            max_io: MAX_IO,
            device: abi::ANY_DEVICE,
            process: 0,
            features: NEEDED | feature::UPDATE_SIZE,
            mark,
        };
        let info = blocking(move || control::add(&wanted)).await.map_err(step("add"))?;
        match Self::start(volume, info, parameters).await {
            Ok(ublk) => Ok(ublk),
            Err(error) => {
                if let Err(error) = blocking(move || leftover::remove(info.device)).await {
                    tracing::warn!(device = info.device, %error, "a ublk device stays behind");
                }
                Err(error)
            }
        }
    }

    async fn start<V: Volume>(volume: V, info: Info, parameters: Parameters) -> Result<Self, UblkError> {
        let device = info.device;
        blocking(move || control::set_parameters(device, &parameters)).await.map_err(step("set up"))?;
        let serving = Serving::open(volume.clone(), &info).await?;
        // The kernel looks for partitions, which the session answers.
        let started = blocking(move || control::start(device)).await;
        Self::settle(volume, device, serving, started.map_err(step("start"))).await
    }

    /// After an error the device is as it was: its users wait for whoever tries next.
    async fn recover<V: Volume>(volume: V, info: Info) -> Result<Self, UblkError> {
        let device = info.device;
        let serving = Serving::open(volume.clone(), &info).await?;
        let recovered = blocking(move || control::end_recovery(device)).await;
        if recovered.is_ok() {
            tracing::info!(device, "going on with the ublk device of another process");
        }
        Self::settle(volume, device, serving, recovered.map_err(step("recover"))).await
    }

    /// The last steps once users can come, or the way back if they cannot.
    async fn settle<V: Volume>(
        volume: V,
        device: u32,
        serving: Serving,
        started: Result<(), UblkError>,
    ) -> Result<Self, UblkError> {
        let settled = match started {
            Ok(()) => blocking(move || nodes::publish(device, DEPTH)).await.map_err(step("make the node of")),
            Err(error) => Err(error),
        };
        if let Err(error) = settled {
            serving.end(Order::Stop).await.map(drop).map_err(step("stop"))?;
            return Err(error);
        }
        Ok(Self::settled(&volume, device, serving))
    }

    fn settled<V: Volume>(volume: &V, device: u32, serving: Serving) -> Self {
        let resizer = tokio::task::spawn_local(follow_size(volume.size(), device)).abort_handle();
        Self { device, serving, resizer }
    }
}

impl Serving {
    /// Opens the queue of a device that was added or whose recovery was begun.
    async fn open<V: Volume>(volume: V, info: &Info) -> Result<Self, UblkError> {
        let (device, depth) = (info.device, info.depth);
        blocking(move || nodes::ensure_queue(device)).await.map_err(step("open"))?;
        // Here and not elsewhere: the kernel takes commands from the thread that does this.
        let queue = Queue::open(&nodes::queue_node(device), depth).map_err(step("open"))?;
        Ok(Self::begin(volume, device, queue))
    }

    fn begin<V: Volume>(volume: V, device: u32, mut queue: Queue) -> Self {
        let orders = Rc::new(Orders::new());
        let given = orders.clone();
        let session = tokio::task::spawn_local(async move {
            let ended = serve(&mut queue, volume, &given).await;
            match &ended {
                Ok(Ended::Ordered) => {}
                Ok(Ended::Stopped) => tracing::info!(device, "a ublk device was stopped"),
                Err(error) => tracing::error!(device, %error, "a ublk device failed; its users wait"),
            }
            (ended, queue)
        });
        Self { orders, session }
    }

    async fn end(self, order: Order) -> io::Result<(Ended, Queue)> {
        self.orders.give(order);
        let (ended, queue) = self.session.await.map_err(io::Error::other)?;
        Ok((ended?, queue))
    }
}

impl UblkOptions {
    fn parameters(&self, size: u64) -> Parameters {
        let read_only = if self.read_only { attribute::READ_ONLY } else { 0 };
        Parameters {
            attributes: attribute::VOLATILE_CACHE | attribute::FUA | read_only,
            logical_block: self.block_size,
            physical_block: PHYSICAL_BLOCK.max(self.block_size),
            max_io: MAX_IO,
            sectors: size / SECTOR,
            max_zero_sectors: MAX_ZERO_SECTORS,
        }
    }
}

impl FrozenUblk {
    /// Of a device that another process froze.
    pub fn handed_over(device: u32) -> Self {
        Self { device, queue: None }
    }

    pub fn device(&self) -> u32 {
        self.device
    }

    pub async fn resume<V: Volume>(mut self, volume: V) -> Result<Ublk, UblkError> {
        let device = self.device;
        match self.queue.take() {
            Some(queue) => {
                let serving = Serving::begin(volume.clone(), device, *queue);
                Ok(Ublk::settled(&volume, device, serving))
            }
            None => {
                let info = blocking(move || leftover::take_over(device)).await.map_err(step("take over"))?;
                Ublk::recover(volume, info).await
            }
        }
    }
}

impl Drop for FrozenUblk {
    fn drop(&mut self) {
        // See the field.
        std::mem::forget(self.queue.take());
    }
}

/// The kernel learns of a new size only when told, and not all kernels can be told.
async fn follow_size(mut size: watch::Receiver<u64>, device: u32) {
    loop {
        let wanted = *size.borrow_and_update();
        let resized = blocking(move || match nodes::size(device) {
            Ok(size) if size == wanted / SECTOR * SECTOR => Ok(()),
            Ok(_) => control::update_size(device, wanted / SECTOR),
            Err(error) => Err(error),
        })
        .await;
        if let Err(error) = resized {
            tracing::warn!(
                device,
                %error,
                "the volume has {wanted} bytes now, but this kernel cannot resize a ublk device (Linux 6.16 can); it \
                 shows its new size after it was detached and attached again"
            );
        }
        if size.changed().await.is_err() {
            return;
        }
    }
}

fn step(step: &'static str) -> impl FnOnce(io::Error) -> UblkError {
    move |source| UblkError::Step { step, source }
}
