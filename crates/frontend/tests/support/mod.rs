//! What the frontend's tests share: a thread for the volume, other people's programs, and a volume that fails on
//! demand. Each test uses a part of it.
#![allow(dead_code)]

use std::cell::Cell;
use std::ffi::OsStr;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::rc::Rc;

use bytes::Bytes;
use granary_frontend::nbd::{Address, Export, NbdUrl, Server};
use granary_frontend::{AllocationRun, FileVolume, Volume, VolumeError};
use tokio::process::Command;
use tokio::sync::watch;

pub const MIB: u64 = 1 << 20;

/// Runs a test as an engine runs: one thread for everything, so that a future that blocks it is noticed.
pub fn on_one_thread<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test)
}

/// A directory, a file in it, and the file served on a unix socket.
pub struct Served {
    pub directory: tempfile::TempDir,
    pub volume: FaultyVolume,
    pub server: Server<FaultyVolume>,
}

impl Served {
    pub async fn new(size: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = FileVolume::create(&directory.path().join("disk"), size).unwrap();
        let volume = FaultyVolume { inner: file, faults: Rc::default() };
        let server = Server::new(Export::new("disk", volume.clone()));
        server.listen(&Address::Unix(directory.path().join("nbd.sock"))).await.unwrap();
        Self { directory, volume, server }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn url(&self) -> NbdUrl {
        NbdUrl { address: Address::Unix(self.path("nbd.sock")), tls: false, export: String::new() }
    }
}

/// Runs a program to its end, which must be a good one; its output. `package` is where Debian has it.
pub async fn run<I: AsRef<OsStr>>(
    package: &str,
    program: &str,
    arguments: impl IntoIterator<Item = I>,
) -> String {
    let (ok, output) = try_run(package, program, arguments).await;
    assert!(ok, "{program} failed:\n{output}");
    output
}

/// Whether it ended well, and all it printed.
pub async fn try_run<I: AsRef<OsStr>>(
    package: &str,
    program: &str,
    arguments: impl IntoIterator<Item = I>,
) -> (bool, String) {
    let command = Command::new(program).args(arguments).stdin(Stdio::null()).kill_on_drop(true).output();
    let output = match tokio::time::timeout(std::time::Duration::from_secs(40), command).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => panic!("{program} cannot run ({error}): apt-get install {package}"),
        Err(_) => panic!("{program} did not end in 40 seconds"),
    };
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// The example program, which cargo builds along with the tests.
pub fn serve_file() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/serve-file");
    assert!(program.exists(), "{} is missing: cargo build --examples", program.display());
    program
}

/// Fills a file with bytes that differ everywhere.
pub fn write_pattern(path: &Path, len: u64, seed: u64) {
    let mut state = seed | 1;
    let words = (0..len / 8).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    std::fs::write(path, words.collect::<Vec<_>>()).unwrap();
}

/// A volume whose requests fail when told to.
#[derive(Clone)]
pub struct FaultyVolume {
    pub inner: FileVolume,
    pub faults: Rc<Faults>,
}

#[derive(Default)]
pub struct Faults {
    pub reads: Cell<Option<VolumeError>>,
    pub writes: Cell<Option<VolumeError>>,
    pub flushes: Cell<u64>,
}

fn check(fault: &Cell<Option<VolumeError>>) -> Result<(), VolumeError> {
    fault.get().map_or(Ok(()), Err)
}

impl Volume for FaultyVolume {
    fn size(&self) -> watch::Receiver<u64> {
        self.inner.size()
    }

    async fn read(&self, offset: u64, len: u32) -> Result<Bytes, VolumeError> {
        check(&self.faults.reads)?;
        self.inner.read(offset, len).await
    }

    async fn write(&self, offset: u64, data: Bytes, durable: bool) -> Result<(), VolumeError> {
        check(&self.faults.writes)?;
        self.inner.write(offset, data, durable).await
    }

    async fn zero(&self, offset: u64, len: u64, allocate: bool, durable: bool) -> Result<(), VolumeError> {
        check(&self.faults.writes)?;
        self.inner.zero(offset, len, allocate, durable).await
    }

    async fn flush(&self) -> Result<(), VolumeError> {
        self.faults.flushes.set(self.faults.flushes.get() + 1);
        self.inner.flush().await
    }

    async fn allocation(&self, offset: u64, len: u64) -> Result<Vec<AllocationRun>, VolumeError> {
        self.inner.allocation(offset, len).await
    }
}
