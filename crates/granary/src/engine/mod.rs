//! `granary engine`: serves one volume from its replicas, under control, until it is told to stop.
//! Engine, frontends and control share one thread; this module wires them and decides nothing about data.

mod arguments;
mod control;
mod handover;
mod reach;
mod serve;
mod volume;

use std::process::ExitCode;

use granary_block::engine::event::StopReason;

pub use arguments::EngineArgs;

/// What `--help` tells about how it ends.
const EXIT_CODES_HELP: &str = "\
Exit codes:
  0  stopped in order, or handed over
  1  could not start, or could not stop in order
  2  wrong usage
  8  fenced: a newer engine serves the volume, and this one must not be started again by itself";

const FENCED: u8 = 8;

pub fn run(arguments: &EngineArgs) -> ExitCode {
    let ended = crate::logs::start(&arguments.log).and_then(|()| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        tokio::task::LocalSet::new().block_on(&runtime, serve::run(arguments))
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => match error.downcast_ref() {
            Some(StopReason::Fenced) => {
                eprintln!("granary: volume {}: {error}", arguments.volume);
                ExitCode::from(FENCED)
            }
            _ => {
                eprintln!("granary: {error:#}");
                ExitCode::FAILURE
            }
        },
    }
}
