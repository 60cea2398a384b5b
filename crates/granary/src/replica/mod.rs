//! `granary replica`: serves a replica's directory, and looks at, repairs and clones directories that nobody serves.

mod arguments;
mod clone;
mod inspect;
mod repair;
mod serve;

pub use arguments::ReplicaArgs;
use arguments::ReplicaCommand;

pub fn run(arguments: ReplicaArgs) -> anyhow::Result<()> {
    match (arguments.command, arguments.serve) {
        (Some(ReplicaCommand::Inspect { dir, output }), _) => inspect::run(&dir, output),
        (Some(ReplicaCommand::Repair { dir, apply }), _) => repair::run(&dir, apply),
        (Some(ReplicaCommand::Clone { from, snapshot, to }), _) => clone::run(&from, &snapshot, &to),
        (None, Some(serve)) => serve::run(&serve, &arguments.log),
        (None, None) => anyhow::bail!("say what to serve: --dir, --listen and --key-file are needed"),
    }
}
