//! Measures a Kubernetes API server from outside: writes, reads, lists, watches, memory.
//!
//! `measure` works on any server that a kubeconfig leads to and writes JSON; `compare` puts two such
//! measurements side by side. Must never know which server it measures.

mod connection;
mod fanout;
mod kubeconfig;
mod lists;
mod load;
mod measurement;
mod memory;
mod objects;
mod report;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Measures a Kubernetes API server")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Put load on a server and write what was measured as JSON to standard output
    Measure(measurement::Options),
    /// Print a table of two measurements and their ratios
    Compare {
        /// The measurement that the other is held against
        peer: PathBuf,
        ours: PathBuf,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Measure(options) => {
            let measured = measurement::measure(&options).await?;
            println!("{}", serde_json::to_string_pretty(&measured)?);
        }
        Command::Compare { peer, ours } => print!("{}", report::table(&peer, &ours)?),
    }
    Ok(())
}
