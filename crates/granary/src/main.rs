//! The `granary` binary: parses the command line, wires the parts together, and nothing else.

mod arguments;
mod clone;
mod config;
mod crds;
mod engine;
mod engine_ctl;
mod instance_manager;
mod kubeconfig;
mod landing;
mod lock;
mod logs;
mod replica;
mod token;
mod up;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use arguments::{Arguments, Command};

/// Requests make many small allocations; the system's allocator takes a tenth of the time of a write.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Two rustls providers in one program would make its defaults ambiguous; this settles it.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        eprintln!("granary: another TLS provider is installed already");
    }
    match arguments.command {
        Command::Clone(arguments) => clone::run(&arguments),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Arguments::command(), "granary", &mut std::io::stdout());
            ExitCode::SUCCESS
        }
        Command::Crds => crds::print(),
        Command::Engine(engine) => engine::run(&engine),
        Command::EngineCtl(ctl) => engine_ctl::run(&ctl),
        Command::InstanceManager(manager) => {
            finish(runtime().and_then(|rt| rt.block_on(instance_manager::run(&manager))))
        }
        Command::Replica(replica) => finish(replica::run(replica)),
        Command::Up(up) => finish(runtime().and_then(|rt| rt.block_on(up::run(&up, &arguments.connection)))),
        Command::Token(token) => {
            finish(runtime().and_then(|rt| rt.block_on(token::run(&token, &arguments.connection))))
        }
        Command::User(command) => match runtime() {
            Ok(runtime) => runtime.block_on(granary_cli::run_to_exit(&command, &arguments.connection)).into(),
            Err(error) => finish(Err(error)),
        },
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

fn finish(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("granary: {error:#}");
            ExitCode::FAILURE
        }
    }
}
