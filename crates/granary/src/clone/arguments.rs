//! The command line of `granary clone`.

use std::path::PathBuf;

use clap::Args;
use granary_block::wire::address::Address;
use granary_frontend::nbd::NbdUrl;

#[derive(Debug, Args)]
#[command(after_help = super::EXIT_CODES_HELP)]
pub struct CloneArgs {
    /// Name of the volume that has the snapshot
    #[arg(long, value_name = "NAME", value_parser = granary_block::name::parse)]
    pub volume: String,

    /// The snapshot to copy
    #[arg(long, value_name = "NAME")]
    pub snapshot: String,

    /// A replica of that volume: HOST:PORT or unix:///path; once for each, one is enough
    #[arg(long = "replica", value_name = "ADDRESS", required = true)]
    pub replicas: Vec<Address>,

    /// File with that volume's key
    #[arg(long, value_name = "FILE")]
    pub key_file: PathBuf,

    /// The volume to overwrite: nbd+unix:///PATH or nbd://HOST:PORT, as its engine was told with --frontend
    #[arg(long, value_name = "URL")]
    pub to: NbdUrl,

    /// Read it back afterwards and compare
    #[arg(long)]
    pub verify: bool,

    /// What to log, e.g. `info` or `granary_block=debug`
    #[arg(long, env = "GRANARY_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,
}
