//! Serves a file through any frontend, or with `--null` a volume that stores nothing: for trying clients out, and for
//! measuring a frontend without an engine behind it. A second process can take over from the first:
//! `serve-file disk --frontend URL --handover S`, then the same with `--take-over S`.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::Parser;
use granary_frontend::{
    AllocationRun, FileVolume, FrontendSpec, Frontends, FrozenFrontends, Volume, VolumeError, VolumeIdentity,
};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

#[derive(Parser)]
struct Arguments {
    /// The file to serve; made when `--size` is given.
    file: Option<PathBuf>,
    /// Bytes.
    #[arg(long)]
    size: Option<u64>,
    /// Serve zeroes and forget what is written.
    #[arg(long)]
    null: bool,
    #[arg(long = "frontend", required = true)]
    frontends: Vec<FrontendSpec>,
    #[arg(long, default_value = "file")]
    name: String,
    #[arg(long, default_value = "/run/granary/devices")]
    run_directory: PathBuf,
    /// A socket on which another process may ask to take over.
    #[arg(long)]
    handover: Option<PathBuf>,
    /// Take over from the process that listens there.
    #[arg(long)]
    take_over: Option<PathBuf>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let size = arguments.size;
        match (&arguments.file, arguments.null) {
            (None, true) => serve(&arguments, Null::new(size.unwrap_or(1 << 30))).await,
            (Some(file), false) => {
                let volume = match size {
                    Some(size) => FileVolume::create(file, size),
                    None => FileVolume::open(file),
                };
                let volume = volume.with_context(|| format!("cannot open {}", file.display()))?;
                serve(&arguments, volume).await
            }
            _ => bail!("give a file or --null"),
        }
    })
}

async fn serve<V: Volume>(arguments: &Arguments, volume: V) -> Result<()> {
    let identity = VolumeIdentity {
        name: arguments.name.clone(),
        read_only: false,
        run_directory: arguments.run_directory.clone(),
    };
    let frontends = match &arguments.take_over {
        None => {
            let (frontends, places) = Frontends::start(&arguments.frontends, &identity, &volume).await?;
            println!("ready {}", places.join(" "));
            frontends
        }
        Some(path) => {
            let frozen = FrozenFrontends::receive(&UnixStream::connect(path)?)?;
            let frontends = frozen.resume(&arguments.frontends, &identity, &volume).await?;
            println!("ready, taken over");
            frontends
        }
    };
    let mut terminate = signal(SignalKind::terminate())?;
    let successor = arguments.handover.as_ref().map(UnixListener::bind).transpose()?;
    tokio::select! {
        _ = terminate.recv() => frontends.stop().await,
        socket = successor_of(successor.as_ref()) => {
            let socket = socket?.into_std()?;
            socket.set_nonblocking(false)?;
            frontends.freeze().await?.send(&socket)?;
        }
    }
    Ok(())
}

async fn successor_of(listener: Option<&UnixListener>) -> std::io::Result<tokio::net::UnixStream> {
    match listener {
        Some(listener) => Ok(listener.accept().await?.0),
        None => std::future::pending().await,
    }
}

#[derive(Clone)]
struct Null {
    size: Rc<watch::Sender<u64>>,
    data: Bytes,
}

impl Null {
    fn new(size: u64) -> Self {
        // Not the known zeroes: those would be answered without their data.
        Self { size: Rc::new(watch::Sender::new(size)), data: Bytes::from(vec![0; 32 << 20]) }
    }
}

impl Volume for Null {
    fn size(&self) -> watch::Receiver<u64> {
        self.size.subscribe()
    }

    async fn read(&self, _offset: u64, len: u32) -> Result<Bytes, VolumeError> {
        Ok(self.data.slice(..len as usize))
    }

    async fn write(&self, _offset: u64, _data: Bytes, _durable: bool) -> Result<(), VolumeError> {
        Ok(())
    }

    async fn zero(&self, _: u64, _: u64, _: bool, _: bool) -> Result<(), VolumeError> {
        Ok(())
    }

    async fn flush(&self) -> Result<(), VolumeError> {
        Ok(())
    }

    async fn allocation(&self, _offset: u64, len: u64) -> Result<Vec<AllocationRun>, VolumeError> {
        Ok(vec![AllocationRun { len, hole: false }])
    }
}
