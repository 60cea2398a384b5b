//! The command line of `granary engine`.

use std::path::PathBuf;

use clap::Args;
use granary_block::engine::Config;
use granary_block::ids::EngineId;
use granary_block::size;
use granary_block::wire::address::Address;
use granary_frontend::FrontendSpec;

#[derive(Debug, Args)]
#[command(after_help = super::EXIT_CODES_HELP)]
pub struct EngineArgs {
    /// Name of the volume
    #[arg(long, value_name = "NAME", value_parser = granary_block::name::parse)]
    pub volume: String,

    /// Size of the volume, e.g. 10GiB; without it, whatever its replicas have
    #[arg(long, value_parser = size::parse)]
    pub size: Option<u64>,

    /// A replica of the volume: HOST:PORT or unix:///path; once for each
    #[arg(long = "replica", value_name = "ADDRESS", required = true)]
    pub replicas: Vec<Address>,

    /// Where the volume is to be reached: nbd+unix:///PATH, nbd://HOST:PORT, fuse:///DIRECTORY, device or device:///LINK (the
    /// best block device this kernel has; with ?via=ublk or ?via=loop that and no other)
    #[arg(long = "frontend", value_name = "URL")]
    pub frontends: Vec<FrontendSpec>,

    /// Where `granary engine-ctl` reaches the engine: unix:///path, or tcp://HOST:PORT on a loopback address
    #[arg(long, value_name = "URL")]
    pub control: Address,

    /// File with the volume's key, at least 16 bytes
    #[arg(long, value_name = "FILE")]
    pub key_file: PathBuf,

    /// Acknowledge writes only while this many replicas are in sync
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub min_in_sync: u32,

    /// Start without this replica, address or identity, although it may hold the newest data; once for each
    #[arg(long, value_name = "ADDRESS")]
    pub assume_lost: Vec<String>,

    /// Seconds to wait for the replicas at the start
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub start_timeout: u64,

    /// Seconds of silence after which a replica counts as failed
    #[arg(long, value_name = "SECONDS", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub replica_timeout: u64,

    /// Seconds that requests wait while too few replicas are in sync, before they fail
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub stall_timeout: u64,

    /// Most requests per second; 0: no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub iops: u64,

    /// Most bytes per second, e.g. 100MiB; 0: no limit
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size::parse)]
    pub bandwidth: u64,

    /// Most bytes per second that rebuilds copy, e.g. 100MiB; 0: no limit
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size::parse)]
    pub rebuild_rate: u64,

    /// How many snapshots the volume may have, besides what its replicas allow; 0: no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub max_snapshots: u32,

    /// How many bytes its snapshots may have together, e.g. 100GiB; 0: no limit
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size::parse)]
    pub max_snapshot_bytes: u64,

    /// Go on where a running engine of the same volume is, without its users noticing: the unix:///path of its control
    #[arg(long, value_name = "URL")]
    pub takeover: Option<Address>,

    /// Serve reads only
    #[arg(long)]
    pub read_only: bool,

    /// Where block devices have their FUSE files
    #[arg(long, value_name = "DIR", default_value = "/run/granary")]
    pub run_dir: PathBuf,

    /// What to log, e.g. `info` or `granary_block=debug`
    #[arg(long, env = "GRANARY_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,
}

const SECOND: u64 = 1_000_000;

impl EngineArgs {
    /// For one run of the engine: its identity is new each time.
    pub fn config(&self) -> Config {
        let replicas = self.replicas.iter().map(Address::to_string).collect();
        Config {
            min_in_sync: self.min_in_sync,
            assume_lost: self.assume_lost.clone(),
            start_timeout: self.start_timeout * SECOND,
            replica_timeout: self.replica_timeout * SECOND,
            stall_timeout: self.stall_timeout * SECOND,
            rebuild_rate: self.rebuild_rate,
            iops: self.iops,
            bandwidth: self.bandwidth,
            ..Config::new(&self.volume, self.size.unwrap_or(0), EngineId::random(), replicas)
        }
    }
}
