//! Checksums of snapshots: computed by all replicas while the caller does something else, and asked for later. Replicas
//! that hold another content than most are corrupt without knowing it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use granary_enginectl::v1;
use parking_lot::Mutex;
use tonic::Status;

use super::engines::Engine;
use super::replicas::url;
use crate::Refusal;
use crate::wire::ptypes::SnapshotHashStatusResponse;

/// Per run of an engine and snapshot.
type Jobs = HashMap<(String, String), Job>;

#[derive(Default)]
pub struct Hashes(Arc<Mutex<Jobs>>);

#[derive(Clone, Debug)]
enum Job {
    Running,
    Done(Vec<v1::Checksum>),
    Failed(String),
}

/// More than any volume's snapshots; older results are computed again.
const MOST: usize = 4096;

impl Hashes {
    /// Results are kept until somebody wants them anew.
    pub async fn begin(&self, mut engine: Engine, snapshot: String, rehash: bool) -> Result<(), Status> {
        let listed = engine.client.list_snapshots(v1::ListSnapshotsRequest {}).await;
        let listed = listed.map_err(|status| engine.told(&status))?.into_inner().snapshots;
        if !listed.iter().any(|known| known.name == snapshot) {
            return Err(missing(&engine, &snapshot));
        }
        let key = (engine.run.clone(), snapshot.clone());
        {
            let mut jobs = self.0.lock();
            match jobs.get(&key) {
                Some(Job::Running) => return Ok(()),
                Some(Job::Done(_)) if !rehash => return Ok(()),
                _ => {}
            }
            if jobs.len() >= MOST {
                jobs.retain(|_, job| matches!(job, Job::Running));
            }
            jobs.insert(key.clone(), Job::Running);
        }
        let jobs = self.0.clone();
        tokio::spawn(async move {
            let job = match engine.client.verify(v1::VerifyRequest { snapshot }).await {
                Ok(reply) => Job::Done(reply.into_inner().checksums),
                Err(status) => Job::Failed(engine.told(&status).message().to_owned()),
            };
            jobs.lock().insert(key, job);
        });
        Ok(())
    }

    pub async fn status(
        &self,
        mut engine: Engine,
        snapshot: &str,
    ) -> Result<BTreeMap<String, SnapshotHashStatusResponse>, Status> {
        let job = self.0.lock().get(&(engine.run.clone(), snapshot.to_owned())).cloned();
        let told = |state: &str, error: String| SnapshotHashStatusResponse {
            state: state.into(),
            error,
            ..SnapshotHashStatusResponse::default()
        };
        let each = match job.ok_or_else(|| missing(&engine, snapshot))? {
            Job::Done(checksums) => return Ok(verdicts(&checksums)),
            Job::Running => told("in_progress", String::new()),
            Job::Failed(why) => told("error", why),
        };
        let replicas = super::volume::status(&mut engine).await?.replicas;
        let in_sync = replicas.iter().filter(|replica| replica.state == "inSync");
        Ok(in_sync.map(|replica| (url(&replica.address), each.clone())).collect())
    }
}

fn missing(engine: &Engine, snapshot: &str) -> Status {
    Refusal::NotFound(format!(
        "volume {} has no snapshot {snapshot} with a checksum asked for",
        engine.volume
    ))
    .into()
}

fn verdicts(checksums: &[v1::Checksum]) -> BTreeMap<String, SnapshotHashStatusResponse> {
    let votes = |digest: &str| checksums.iter().filter(|sum| sum.digest == digest).count();
    let agreed = |digest: &str| votes(digest) * 2 > checksums.len();
    let settled = checksums.iter().any(|sum| agreed(&sum.digest));
    let verdict = |sum: &v1::Checksum| SnapshotHashStatusResponse {
        state: if settled { "complete" } else { "error" }.into(),
        checksum: sum.digest.clone(),
        error: if settled {
            String::new()
        } else {
            "the replicas differ, and no majority tells which is right".into()
        },
        silently_corrupted: settled && !agreed(&sum.digest),
    };
    checksums.iter().map(|sum| (url(&sum.replica), verdict(sum))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_majority_is_right_and_without_one_nobody_is() {
        let judge = |digests: &[&str]| {
            let sums = digests.iter().enumerate().map(|(number, digest)| v1::Checksum {
                replica: format!("h:{number}"),
                digest: (*digest).into(),
            });
            verdicts(&sums.collect::<Vec<_>>())
                .into_values()
                .map(|v| (v.state, v.silently_corrupted))
                .collect::<Vec<_>>()
        };
        let complete = |corrupt| ("complete".to_owned(), corrupt);
        assert_eq!(judge(&["a", "a", "a"]), [complete(false), complete(false), complete(false)]);
        assert_eq!(judge(&["a", "b", "a"]), [complete(false), complete(true), complete(false)]);
        assert_eq!(judge(&["a", "b"]), [("error".to_owned(), false), ("error".to_owned(), false)]);
    }
}
