//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Disks for virtual machines and containers, on whatever storage you have.
#[derive(Debug, Parser)]
#[command(name = "granary", version, after_help = granary_cli::EXIT_CODES_HELP, propagate_version = true)]
pub struct Arguments {
    #[command(flatten)]
    pub connection: granary_cli::ConnectionArgs,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run Granary on this machine: the API and everything behind it
    Up(UpArgs),
    /// Make, list and revoke tokens for users of the API
    Token(TokenArgs),
    /// Serve one copy of a volume from a directory, or look after such a directory
    Replica(crate::replica::ReplicaArgs),
    /// Keep the replicas of one volume identical and serve it
    Engine(Box<crate::engine::EngineArgs>),
    /// Copy a snapshot of one volume into another volume
    Clone(crate::clone::CloneArgs),
    /// Look at and change a running engine
    EngineCtl(crate::engine_ctl::EngineCtlArgs),
    /// Run engines and replicas of this machine as processes, and answer for them
    InstanceManager(Box<crate::instance_manager::InstanceManagerArgs>),
    /// Print the CustomResourceDefinitions of all kinds, for a Kubernetes cluster
    Crds,
    /// Print a completion script for a shell
    Completions {
        /// The shell to complete for
        shell: clap_complete::Shell,
    },
    #[command(flatten)]
    User(granary_cli::Command),
}

#[derive(Debug, Args)]
pub struct UpArgs {
    /// Address for the API, the page and the metrics [default: 127.0.0.1:8443]
    #[arg(long, env = "GRANARY_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,

    /// File with settings; flags and environment variables win over it
    #[arg(long, env = "GRANARY_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// What to log, e.g. `info` or `granary_apiserver=debug` [default: info]
    #[arg(long, env = "GRANARY_LOG", value_name = "FILTER")]
    pub log: Option<String>,
}

#[derive(Debug, Args)]
pub struct TokenArgs {
    #[command(subcommand)]
    pub command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it; it cannot be shown again
    Create {
        /// Whose token it is
        user: String,
        /// `admin` or `read-only`
        #[arg(long, default_value = "read-only")]
        role: String,
    },
    /// List who has a token
    List,
    /// Make a token worthless
    Revoke { user: String },
}
