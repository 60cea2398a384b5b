//! The command line of `granary replica`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use granary_block::size;
use granary_block::wire::address::Address;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ReplicaArgs {
    #[command(subcommand)]
    pub command: Option<ReplicaCommand>,

    // No defaults and no variables in there: any of them would make the whole group look given.
    #[command(flatten)]
    pub serve: Option<ServeArgs>,

    /// What to log, e.g. `info` or `granary_block=debug`
    #[arg(long, env = "GRANARY_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Directory that holds the replica; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,

    /// Size of the volume, e.g. 10GiB; only needed for a new directory
    #[arg(long, value_parser = size::parse)]
    pub size: Option<u64>,

    /// Where to listen: HOST:PORT (port 0: any free one) or unix:///path
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Address,

    /// File with the volume's key, at least 16 bytes
    #[arg(long, value_name = "FILE")]
    pub key_file: PathBuf,

    /// Volume it is a replica of; without it, the one whose engine opens it first
    #[arg(long, value_name = "NAME")]
    pub volume: Option<String>,

    /// Raw image below a new volume; only read, and never to be changed by anybody
    #[arg(long, value_name = "FILE")]
    pub backing: Option<PathBuf>,

    /// How many snapshots the volume may have [default: 249]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4000))]
    pub max_snapshots: Option<u32>,
}

#[derive(Debug, Subcommand)]
pub enum ReplicaCommand {
    /// Show what a replica's directory holds, without changing anything
    Inspect {
        dir: PathBuf,
        /// How to show it
        #[arg(short, long, default_value = "text")]
        output: Output,
    },
    /// Say what is wrong with a replica's directory and what would be done about it
    Repair {
        dir: PathBuf,
        /// Do it
        #[arg(long)]
        apply: bool,
    },
    /// Make a new replica from a snapshot, in an instant, by sharing its layers
    Clone {
        /// The directory with the snapshot
        #[arg(long, value_name = "DIR")]
        from: PathBuf,
        #[arg(long, value_name = "NAME")]
        snapshot: String,
        /// The new directory, on the same file system
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    Text,
    Json,
}
