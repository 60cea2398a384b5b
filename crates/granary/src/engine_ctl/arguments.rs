//! The command line of `granary engine-ctl`.

use clap::{Args, Subcommand, ValueEnum};
use granary_block::size;
use granary_block::wire::address::Address;
use granary_frontend::FrontendSpec;

#[derive(Debug, Args)]
pub struct EngineCtlArgs {
    /// Where the engine's control is: unix:///path or tcp://HOST:PORT, as given to its --control
    #[arg(long, env = "GRANARY_CONTROL", value_name = "URL")]
    pub control: Address,

    /// How to show the answer
    #[arg(short, long, global = true, default_value = "table")]
    pub output: Output,

    #[command(subcommand)]
    pub command: CtlCommand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    Table,
    Json,
}

#[derive(Debug, Subcommand)]
pub enum CtlCommand {
    /// Show the volume and its replicas
    Status,
    /// Make, list, restore and remove snapshots
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Add, remove and list replicas
    #[command(subcommand)]
    Replica(ReplicaCommand),
    /// Say how the volume is reached while it stays open
    #[command(subcommand)]
    Frontend(FrontendCommand),
    /// Show the rebuilds that are under way
    RebuildStatus,
    /// Limit how many bytes per second rebuilds copy, e.g. 100MiB; 0: no limit
    RebuildRate {
        #[arg(value_parser = size::parse)]
        rate: u64,
    },
    /// Make the volume larger, while it is in use
    Expand {
        /// The new size, e.g. 20GiB
        #[arg(value_parser = size::parse)]
        size: u64,
    },
    /// Limit requests and bytes per second; 0: no limit
    Qos {
        #[arg(long, value_name = "N", default_value_t = 0)]
        iops: u64,
        #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size::parse)]
        bandwidth: u64,
    },
    /// Limit how many snapshots the volume may have, and how large they may be together; 0: no limit
    SnapshotLimits {
        #[arg(long, value_name = "N")]
        count: Option<u32>,
        #[arg(long, value_name = "SIZE", value_parser = size::parse)]
        bytes: Option<u64>,
    },
    /// Compare the content of all replicas; ends with 1 if they differ
    Verify {
        /// As of this snapshot, not as of now
        #[arg(long, value_name = "NAME")]
        snapshot: Option<String>,
    },
    /// Show counters and latencies
    Metrics,
    /// Stop the engine in order
    Close,
}

#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Keep the volume as it is now
    Create {
        /// A name; without it, one is chosen and printed
        name: Option<String>,
        /// A label to keep with it; once for each
        #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
        labels: Vec<(String, String)>,
    },
    List,
    /// Make the volume what it was; what was written since is lost
    Revert {
        name: String,
    },
    /// Forget a snapshot; `purge` frees its space
    Remove {
        name: String,
    },
    /// Free the space of removed snapshots
    Purge {
        /// Wait until that is done
        #[arg(long)]
        wait: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum ReplicaCommand {
    /// Take another replica in, and rebuild it
    Add {
        address: Address,
    },
    /// Do without a replica
    Remove {
        address: Address,
    },
    List,
}

#[derive(Debug, Subcommand)]
pub enum FrontendCommand {
    /// Make a volume reachable that is not reached by anything yet
    Start {
        /// As after `granary engine --frontend`; once for each
        #[arg(required = true, value_name = "URL")]
        frontends: Vec<FrontendSpec>,
    },
    /// End all ways to reach the volume
    Stop,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("'{text}' is no label: write NAME=VALUE")),
    }
}
