//! `granary engine-ctl`: looks at and changes a running engine through its control API, and nothing else.

mod arguments;
mod commands;
mod show;

use std::error::Error;
use std::process::ExitCode;

use granary_cli::Exit;
use granary_enginectl::ConnectError;

pub use arguments::EngineCtlArgs;

pub fn run(arguments: &EngineCtlArgs) -> ExitCode {
    let ended = crate::runtime().and_then(|runtime| runtime.block_on(commands::run(arguments)));
    let error = match ended {
        Ok(exit) => return exit.into(),
        Err(error) => error,
    };
    let exit = match error.downcast_ref::<tonic::Status>() {
        Some(status) if was_cut_off(status) => {
            eprintln!(
                "granary: the engine at {} does not answer; it hangs, or it has ended: look at its process and its log",
                arguments.control
            );
            Exit::Unreachable
        }
        Some(status) => {
            eprintln!("granary: {}", status.message());
            exit_of(status.code())
        }
        None => {
            eprintln!("granary: {error:#}");
            if error.is::<ConnectError>() { Exit::Unreachable } else { Exit::Attention }
        }
    };
    exit.into()
}

/// What an engine answers has no source; what became of the way there has.
fn was_cut_off(status: &tonic::Status) -> bool {
    status.source().is_some()
}

fn exit_of(code: tonic::Code) -> Exit {
    match code {
        tonic::Code::NotFound => Exit::NotFound,
        tonic::Code::AlreadyExists | tonic::Code::Aborted => Exit::Conflict,
        tonic::Code::DeadlineExceeded => Exit::Timeout,
        tonic::Code::Unavailable => Exit::Unreachable,
        _ => Exit::Attention,
    }
}
