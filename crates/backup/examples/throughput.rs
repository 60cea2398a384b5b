//! How fast backups and restores run against a target, over data in memory:
//!
//! ```text
//! throughput TARGET [MEBIBYTES] [CONCURRENCY] [COMPRESSION]
//! ```
//!
//! Credentials are taken from `KEY=VALUE` arguments. Half of each block is noise, the other half is not.

use std::io;
use std::time::Instant;

use anyhow::Context;
use async_trait::async_trait;
use granary_backup::{
    BackupName, BackupRequest, Credentials, Extent, Job, Repository, RestoreOnto, RestoreRequest, Snapshot,
    Source, Target, VolumeName,
};
use tokio_util::sync::CancellationToken;

struct Memory {
    bytes: Vec<u8>,
}

impl Memory {
    fn noisy(size: usize) -> Self {
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        let mut bytes = vec![0; size];
        for (number, word) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *word = if number / 64 % 2 == 0 { state } else { state >> 60 }.to_le_bytes();
        }
        Self { bytes }
    }
}

#[async_trait]
impl Source for Memory {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    async fn allocated(&self) -> io::Result<Vec<Extent>> {
        Ok(vec![Extent::new(0, self.size())])
    }

    async fn changed_since(&self, _snapshot: &str) -> io::Result<Option<Vec<Extent>>> {
        Ok(None)
    }

    async fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        buffer.copy_from_slice(&self.bytes[offset as usize..][..buffer.len()]);
        Ok(())
    }
}

/// Compares instead of writing.
struct Expecting<'a>(&'a Memory);

#[async_trait]
impl Target for Expecting<'_> {
    fn size(&self) -> u64 {
        self.0.size()
    }

    async fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let expected = &self.0.bytes[offset as usize..][..data.len()];
        if data == expected { Ok(()) } else { Err(io::Error::other("other data came back")) }
    }

    async fn write_zeroes(&self, _offset: u64, _length: u64) -> io::Result<()> {
        Ok(())
    }

    async fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (credentials, arguments): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|text| text.contains('='));
    let argument = |position: usize| arguments.get(position).map(String::as_str);
    let target = argument(0).context("which target?")?.parse()?;
    let mebibytes: usize = argument(1).unwrap_or("512").parse()?;
    let concurrency: usize = argument(2).unwrap_or("4").parse()?;

    let credentials = Credentials::from_entries(credentials.iter().map(String::as_str))?;
    let repository = Repository::open(&target, &credentials, None).await?;
    let source = Memory::noisy(mebibytes << 20);
    let volume = VolumeName::new("throughput")?;
    let request = |number: u32| -> anyhow::Result<BackupRequest> {
        let snapshot = Snapshot { name: format!("s{number}"), created_at: "2026-01-01T00:00:00Z".into() };
        let mut request =
            BackupRequest::new(volume.clone(), BackupName::new(format!("b{number}"))?, snapshot);
        request.compression = argument(3).unwrap_or("lz4").parse()?;
        Ok(request)
    };
    let report = |what: &str, began: Instant| {
        // The lock's settling is the same for every size.
        let seconds = began.elapsed().as_secs_f64() - 2.0;
        println!("{what:<22} {seconds:6.2} s  {:7.1} MiB/s", mebibytes as f64 / seconds);
    };

    let began = Instant::now();
    repository.backup(&request(1)?, &source, &Job::new(concurrency)).await?;
    report("first backup", began);
    let began = Instant::now();
    repository.backup(&request(2)?, &source, &Job::new(concurrency)).await?;
    report("the same again", began);
    let began = Instant::now();
    let restore =
        RestoreRequest { volume: volume.clone(), backup: BackupName::new("b2")?, onto: RestoreOnto::Blank };
    repository.restore(&restore, &Expecting(&source), &Job::new(concurrency)).await?;
    report("restore", began);
    let began = Instant::now();
    repository.delete_volume(&volume, &CancellationToken::new()).await?;
    report("deletion of all", began);
    Ok(())
}
