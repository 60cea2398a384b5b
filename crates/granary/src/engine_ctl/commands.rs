//! One call of the API for each command, and its answer on standard output.

use std::time::Duration;

use granary_block::size::show as size;
use granary_cli::Exit;
use granary_enginectl::{Client, v1};
use serde::Serialize;

use super::arguments::{CtlCommand, EngineCtlArgs, FrontendCommand, Output, ReplicaCommand, SnapshotCommand};
use super::show;

pub async fn run(arguments: &EngineCtlArgs) -> anyhow::Result<Exit> {
    let mut client = granary_enginectl::connect(&arguments.control).await?;
    let printer = Printer(arguments.output);
    match &arguments.command {
        CtlCommand::Status => {
            let status = client.status(v1::StatusRequest {}).await?.into_inner();
            printer.print(&status, show::status)?;
        }
        CtlCommand::Snapshot(command) => snapshot(&mut client, printer, command).await?,
        CtlCommand::Replica(command) => replica(&mut client, printer, command).await?,
        CtlCommand::Frontend(command) => frontend(&mut client, printer, command).await?,
        CtlCommand::RebuildStatus => {
            let reply = client.rebuild_status(v1::RebuildStatusRequest {}).await?.into_inner();
            printer.print(&reply, |reply| show::rebuilds(&reply.replicas))?;
        }
        CtlCommand::RebuildRate { rate } => {
            let request = v1::SetRebuildRateRequest { bytes_per_second: *rate };
            client.set_rebuild_rate(request).await?;
            printer.say(&format!("rebuilds now copy {}", show::limit(*rate, "/s")))?;
        }
        CtlCommand::Expand { size: wanted } => {
            client.expand(v1::ExpandRequest { size: *wanted }).await?;
            printer.say(&format!("the volume now has {}", size(*wanted)))?;
        }
        CtlCommand::Qos { iops, bandwidth } => {
            client.set_qos(v1::SetQosRequest { iops: *iops, bandwidth: *bandwidth }).await?;
            printer.say("the limits are set")?;
        }
        CtlCommand::SnapshotLimits { count, bytes } => {
            let request = v1::SetSnapshotLimitsRequest { max_snapshots: *count, max_snapshot_bytes: *bytes };
            client.set_snapshot_limits(request).await?;
            printer.say("the limits are set")?;
        }
        CtlCommand::Verify { snapshot } => {
            let request = v1::VerifyRequest { snapshot: snapshot.clone().unwrap_or_default() };
            let reply = client.verify(request).await?.into_inner();
            printer.print(&reply, show::verdict)?;
            return Ok(if reply.equal { Exit::Ok } else { Exit::Attention });
        }
        CtlCommand::Metrics => {
            let metrics = client.metrics(v1::MetricsRequest {}).await?.into_inner();
            printer.print(&metrics, show::metrics)?;
        }
        CtlCommand::Close => {
            client.close(v1::CloseRequest {}).await?;
            printer.say("the engine has stopped")?;
        }
    }
    Ok(Exit::Ok)
}

async fn snapshot(client: &mut Client, printer: Printer, command: &SnapshotCommand) -> anyhow::Result<()> {
    match command {
        SnapshotCommand::Create { name, labels } => {
            let name = name.clone().unwrap_or_default();
            let labels = labels.iter().cloned().collect();
            let request = v1::CreateSnapshotRequest { name, labels, automatic: false };
            let made = client.create_snapshot(request).await?.into_inner();
            printer.print(&made, |made| format!("snapshot {} is made\n", made.name))
        }
        SnapshotCommand::List => {
            let list = client.list_snapshots(v1::ListSnapshotsRequest {}).await?.into_inner();
            printer.print(&list, |list| show::snapshots(&list.snapshots))
        }
        SnapshotCommand::Revert { name } => {
            client.revert_snapshot(v1::RevertSnapshotRequest { name: name.clone() }).await?;
            printer.say(&format!("the volume is what it was at snapshot {name}"))
        }
        SnapshotCommand::Remove { name } => {
            client.remove_snapshot(v1::RemoveSnapshotRequest { name: name.clone() }).await?;
            printer.say(&format!("snapshot {name} is removed; `snapshot purge` frees its space"))
        }
        SnapshotCommand::Purge { wait } => {
            client.purge_snapshots(v1::PurgeSnapshotsRequest {}).await?;
            if !wait {
                return printer.say("the purge has begun; `status` tells when it has ended");
            }
            while client.status(v1::StatusRequest {}).await?.into_inner().purging {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            printer.say("removed snapshots take no space any more")
        }
    }
}

async fn replica(client: &mut Client, printer: Printer, command: &ReplicaCommand) -> anyhow::Result<()> {
    match command {
        ReplicaCommand::Add { address } => {
            let address = address.to_string();
            client.add_replica(v1::AddReplicaRequest { address: address.clone() }).await?;
            printer.say(&format!("{address} is being taken in; `rebuild-status` tells how far it is"))
        }
        ReplicaCommand::Remove { address } => {
            let address = address.to_string();
            client.remove_replica(v1::RemoveReplicaRequest { address: address.clone() }).await?;
            printer.say(&format!("{address} is no replica of the volume any more"))
        }
        ReplicaCommand::List => {
            let list = client.list_replicas(v1::ListReplicasRequest {}).await?.into_inner();
            printer.print(&list, |list| show::replicas(&list.replicas))
        }
    }
}

async fn frontend(client: &mut Client, printer: Printer, command: &FrontendCommand) -> anyhow::Result<()> {
    match command {
        FrontendCommand::Start { frontends } => {
            let frontends = frontends.iter().map(ToString::to_string).collect();
            client.start_frontends(v1::StartFrontendsRequest { frontends }).await?;
            let places = client.status(v1::StatusRequest {}).await?.into_inner().frontends;
            printer.say(&format!("the volume is reached at {}", places.join(", ")))
        }
        FrontendCommand::Stop => {
            client.stop_frontends(v1::StopFrontendsRequest {}).await?;
            printer.say("the volume cannot be reached any more")
        }
    }
}

#[derive(Clone, Copy)]
struct Printer(Output);

impl Printer {
    fn print<T: Serialize>(self, answer: &T, table: impl Fn(&T) -> String) -> anyhow::Result<()> {
        match self.0 {
            Output::Json => println!("{}", serde_json::to_string_pretty(answer)?),
            Output::Table => print!("{}", table(answer)),
        }
        Ok(())
    }

    fn say(self, message: &str) -> anyhow::Result<()> {
        self.print(&serde_json::json!({ "message": message }), |_| format!("{message}\n"))
    }
}
