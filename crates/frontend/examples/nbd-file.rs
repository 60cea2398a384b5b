//! Serves a file over NBD, or with `--null` a volume that stores nothing: for trying clients out and for measuring
//! the frontend without an engine behind it.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::Parser;
use granary_frontend::nbd::{Address, Export, NbdUrl, Server};
use granary_frontend::{AllocationRun, FileVolume, Volume, VolumeError};
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
    /// nbd+unix:///path.sock or nbd://host:port
    #[arg(long)]
    listen: NbdUrl,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let size = arguments.size;
        match (&arguments.file, arguments.null) {
            (None, true) => serve(&arguments.listen.address, Null::new(size.unwrap_or(1 << 30))).await,
            (Some(file), false) => {
                let volume = match size {
                    Some(size) => FileVolume::create(file, size),
                    None => FileVolume::open(file),
                };
                let volume = volume.with_context(|| format!("cannot open {}", file.display()))?;
                serve(&arguments.listen.address, volume).await
            }
            _ => bail!("give a file or --null"),
        }
    })
}

async fn serve<V: Volume>(address: &Address, volume: V) -> Result<()> {
    let server = Server::new(Export::new("file", volume));
    println!("ready {:?}", server.listen(address).await?);
    tokio::signal::ctrl_c().await?;
    server.stop().await;
    Ok(())
}

#[derive(Clone)]
struct Null {
    size: std::rc::Rc<watch::Sender<u64>>,
    data: Bytes,
}

impl Null {
    fn new(size: u64) -> Self {
        // Not `zeroes`: those would be answered without their data.
        Self { size: std::rc::Rc::new(watch::Sender::new(size)), data: Bytes::from(vec![0; 32 << 20]) }
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
