//! The user's commands as a program of their own, to try them against any API.

use std::process::ExitCode;

use clap::Parser;
use granary_cli::{Command, ConnectionArgs, EXIT_CODES_HELP};

#[derive(Parser)]
#[command(name = "granary", after_help = EXIT_CODES_HELP)]
struct Cli {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: Command,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    rustls::crypto::ring::default_provider().install_default().expect("nobody installed one before");
    let cli = Cli::parse();
    granary_cli::run_to_exit(&cli.command, &cli.connection).await.into()
}
