//! The command line of `granary instance-manager`.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use granary_block::size;
use granary_instance::process::Settings;
use granary_instance::server::Listen;

#[derive(Debug, Args)]
pub struct InstanceManagerArgs {
    /// Address of the process service; the proxy has the next port, the instance service the third after it
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8500")]
    pub listen: SocketAddr,

    /// Ports for engines and replicas
    #[arg(long, value_name = "FIRST-LAST", default_value = "10000-20000", value_parser = ports)]
    pub port_range: RangeInclusive<u16>,

    /// Where what is known of running processes is kept; must outlive this process, not the machine
    #[arg(long, value_name = "DIR", default_value = "/run/granary/instances")]
    pub state_dir: PathBuf,

    /// Where each process has its log
    #[arg(long, value_name = "DIR", default_value = "/var/log/instances")]
    pub logs_dir: PathBuf,

    /// A log becomes twice as large as this at most, and loses its oldest half then
    #[arg(long, value_name = "SIZE", default_value = "8MiB", value_parser = size::parse)]
    pub log_limit: u64,

    /// Where the volumes' keys are: a file VOLUME.key for each, the same on all machines with a part of the volume
    #[arg(long, value_name = "DIR", default_value = "/var/lib/granary/keys")]
    pub keys_dir: PathBuf,

    /// Make the key of a volume that has none; only for volumes that live on this machine alone
    #[arg(long)]
    pub create_keys: bool,

    /// Directory with ca.crt, tls.crt and tls.key; then only clients with a certificate of that authority are answered
    #[arg(long, value_name = "DIR")]
    pub tls_dir: Option<PathBuf>,

    /// Answer other machines without certificates: whoever reaches the port can start processes
    #[arg(long, conflicts_with = "tls_dir")]
    pub plaintext: bool,

    /// Directory whose programs may be run besides this one, e.g. those of other versions; once for each
    #[arg(long, value_name = "DIR")]
    pub binaries: Vec<PathBuf>,

    /// Seconds a process may take to start
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub start_timeout: u64,

    /// Seconds a process may take to stop before it is killed
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub stop_timeout: u64,

    /// What to log, e.g. `info` or `granary_instance=debug`
    #[arg(long, env = "GRANARY_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,
}

impl InstanceManagerArgs {
    pub fn listen(&self) -> Listen {
        Listen { address: self.listen, tls_dir: self.tls_dir.clone(), plaintext: self.plaintext }
    }

    pub fn settings(&self) -> anyhow::Result<Settings> {
        let program = std::env::current_exe().and_then(std::fs::canonicalize).context("our own program")?;
        let absolute = |path: &PathBuf| std::path::absolute(path).with_context(|| path.display().to_string());
        let binaries = self.binaries.iter().map(|directory| {
            directory.canonicalize().with_context(|| format!("--binaries {}", directory.display()))
        });
        Ok(Settings {
            binaries: binaries.collect::<Result<_, _>>()?,
            state_dir: absolute(&self.state_dir)?,
            logs_dir: absolute(&self.logs_dir)?,
            keys_dir: absolute(&self.keys_dir)?,
            create_keys: self.create_keys,
            ports: self.port_range.clone(),
            start_timeout: Duration::from_secs(self.start_timeout),
            stop_timeout: Duration::from_secs(self.stop_timeout),
            log_limit: self.log_limit,
            ..Settings::new(program, &self.state_dir)
        })
    }
}

fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let wrong = || format!("'{text}' is no range of ports: write FIRST-LAST, e.g. 10000-20000");
    let (first, last) = text.split_once('-').ok_or_else(wrong)?;
    let range = first.parse::<u16>().map_err(|_| wrong())?..=last.parse().map_err(|_| wrong())?;
    if range.is_empty() || *range.start() == 0 { Err(wrong()) } else { Ok(range) }
}
