//! `granary clone`: copies a snapshot into another volume, through that one's NBD address.
//! Reads from replicas, beside a running engine; never changes the source.

mod arguments;
mod copy;
mod progress;
mod target;
mod verify;

use std::process::ExitCode;

use anyhow::{Context, bail};
use granary_block::reader::{Problem, ReaderError, SnapshotReader, Source};
use granary_block::size;
use granary_block::wire::key::Key;
use granary_cli::Exit;
use granary_frontend::nbd::ConnectError;
use tokio::signal::unix::{SignalKind, signal};

pub use arguments::CloneArgs;
use progress::Progress;
use target::Target;

/// What `--help` tells about how it ends.
const EXIT_CODES_HELP: &str = "\
Exit codes:
  0  the target is the snapshot
  1  failed or stopped: what the target holds is of no use
  2  wrong usage
  3  there is no such snapshot, or it was removed meanwhile
  4  the replicas do not agree which snapshot has that name
  5  the key was refused
  7  no replica, or not the target, could be reached";

pub fn run(arguments: &CloneArgs) -> ExitCode {
    let ended = crate::logs::start(&arguments.log).and_then(|()| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        tokio::task::LocalSet::new().block_on(&runtime, until_told(arguments))
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("granary: {error:#}");
            exit_of(&error).into()
        }
    }
}

async fn until_told(arguments: &CloneArgs) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        cloned = clone(arguments) => return cloned,
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    bail!("stopped before the end: what {} holds is not the snapshot", arguments.to)
}

async fn clone(arguments: &CloneArgs) -> anyhow::Result<()> {
    let source = Source {
        volume: arguments.volume.clone(),
        key: Key::read(&arguments.key_file)?,
        replicas: arguments.replicas.clone(),
    };
    let mut reader = SnapshotReader::open(source, &arguments.snapshot).await?;
    let target = Target::connect(&arguments.to).await?;
    let size = reader.size();
    if target.size() < size {
        bail!(
            "{} has {} ({} bytes), and the snapshot {} ({size} bytes): give a volume of at least that size",
            arguments.to,
            size::show(target.size()),
            target.size(),
            size::show(size)
        );
    }
    tracing::info!(volume = arguments.volume, snapshot = arguments.snapshot, size, to = %arguments.to, "cloning");

    let progress = Progress::start("cloned", target.size());
    let counts = copy::run(&mut reader, &target, &progress).await?;
    target.flush().await.context("what was copied is perhaps not on disk")?;
    progress.finish();
    if arguments.verify {
        let progress = Progress::start("verified", target.size());
        verify::run(&mut reader, &target, &progress).await?;
        progress.finish();
    }
    println!(
        "cloned volume={} snapshot={} size={size} read={} written={} zeroed={} skipped={} verified={}",
        arguments.volume,
        arguments.snapshot,
        counts.read,
        counts.written,
        counts.zeroed,
        counts.skipped,
        arguments.verify
    );
    Ok(())
}

fn exit_of(error: &anyhow::Error) -> Exit {
    if let Some(ConnectError::Socket { .. }) = error.downcast_ref() {
        return Exit::Unreachable;
    }
    match error.downcast_ref() {
        Some(ReaderError::NotFound { .. } | ReaderError::Removed { .. }) => Exit::NotFound,
        Some(ReaderError::Disagreement { .. }) => Exit::Conflict,
        Some(ReaderError::Unavailable { problems, .. })
            if problems.any(|problem| matches!(problem, Problem::KeyRefused)) =>
        {
            Exit::Forbidden
        }
        Some(ReaderError::Unavailable { problems, .. })
            if problems.any(|problem| match problem {
                Problem::Dial(error) => error.is_temporary(),
                problem => matches!(problem, Problem::Lost(_) | Problem::Silent(_)),
            }) =>
        {
            Exit::Unreachable
        }
        _ => Exit::Attention,
    }
}
