//! `granary engine-ctl`: looks at and changes a running engine through its control API, and nothing else.

mod arguments;
mod commands;
mod show;

use std::process::ExitCode;

use granary_cli::Exit;
use granary_enginectl::ConnectError;

pub use arguments::EngineCtlArgs;

pub fn run(arguments: &EngineCtlArgs) -> ExitCode {
    let ended = crate::runtime().and_then(|runtime| runtime.block_on(commands::run(arguments)));
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            let status = error.downcast_ref::<tonic::Status>();
            match status {
                Some(status) => eprintln!("granary: {}", status.message()),
                None => eprintln!("granary: {error:#}"),
            }
            match status {
                Some(status) => exit_of(status.code()).into(),
                None if error.is::<ConnectError>() => Exit::Unreachable.into(),
                None => Exit::Attention.into(),
            }
        }
    }
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
