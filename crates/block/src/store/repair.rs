//! What could be done about a directory's problems. A plan says it; only [`Remedy::apply`] does it, one at a time.
//! Never invents content: what is lost is rebuilt from another replica.

use std::io;

use serde::Serialize;

use super::error::{Result, StoreError};
use super::inspect::{Inspection, Problem};
use super::intents::{self, IntentMap};
use super::metadata::{self, Metadata};
use super::open::lock;
use crate::disk::Disk;

/// One problem with what would be done about it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Remedy {
    pub problem: Problem,
    pub action: Action,
    /// The action in words.
    pub explanation: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// The interrupted replacement takes the metadata's place.
    FinishReplacement,
    RemoveFile,
    /// A new map in which every region is marked, so that all are compared.
    MarkAllRegions,
    /// Nothing here helps; the explanation says what does.
    Nothing,
}

/// Says for each problem what would be done. Changes nothing.
pub fn plan_repair(inspection: &Inspection) -> Vec<Remedy> {
    let replacement_is_good = inspection.problems.contains(&Problem::InterruptedReplacement { good: true });
    inspection.problems.iter().map(|problem| remedy(problem, replacement_is_good)).collect()
}

fn remedy(problem: &Problem, replacement_is_good: bool) -> Remedy {
    let (action, explanation) = match problem {
        Problem::MetadataMissing | Problem::MetadataUnreadable { .. } if replacement_is_good => (
            Action::FinishReplacement,
            format!("{} becomes {}: it is whole and newer", metadata::TEMPORARY, metadata::FILE),
        ),
        Problem::InterruptedReplacement { .. } => (
            Action::RemoveFile,
            format!("{} is removed; the change it was for never happened", metadata::TEMPORARY),
        ),
        Problem::Leftover { name, data } => {
            (Action::RemoveFile, format!("{name} is removed, which frees {data} bytes"))
        }
        Problem::FileMissing { name } if name == intents::FILE => (
            Action::MarkAllRegions,
            format!(
                "a new {name} marks every region, so the whole volume is compared with the other replicas"
            ),
        ),
        Problem::Backing { path, .. } => {
            (Action::Nothing, format!("put the original {path} back, or rebuild this replica"))
        }
        Problem::MetadataMissing => (
            Action::Nothing,
            "either this is no replica's directory, then leave it alone; or its content is lost: rebuild the replica \
             from another one, in a new directory"
                .to_owned(),
        ),
        _ => (
            Action::Nothing,
            "content is lost: remove the directory and rebuild this replica from another one".to_owned(),
        ),
    };
    Remedy { problem: problem.clone(), action, explanation }
}

impl Remedy {
    /// Does it. The volume must not be open.
    pub fn apply(&self, disk: &dyn Disk) -> Result<()> {
        let _lock = lock(disk)?;
        match self.action {
            Action::Nothing => Ok(()),
            Action::FinishReplacement => self.finish_replacement(disk),
            Action::MarkAllRegions => mark_all(disk),
            Action::RemoveFile => match &self.problem {
                Problem::Leftover { name, .. } => remove(disk, name),
                _ => remove(disk, metadata::TEMPORARY),
            },
        }
    }

    fn finish_replacement(&self, disk: &dyn Disk) -> Result<()> {
        if super::inspect::temporary(disk).is_none() {
            let problem = format!("{} is not whole any more", metadata::TEMPORARY);
            return Err(StoreError::Damaged { directory: disk.describe(), problem });
        }
        disk.rename(metadata::TEMPORARY, metadata::FILE)
            .and_then(|()| disk.sync_names())
            .map_err(StoreError::io(format!("put {} in place", metadata::TEMPORARY)))
    }
}

fn mark_all(disk: &dyn Disk) -> Result<()> {
    let size = Metadata::load(disk)?.size;
    let regions = size.div_ceil(crate::geometry::INTENT_REGION);
    IntentMap::create(disk, size)?.set(&[crate::wire::message::Regions(0, regions)])?;
    disk.sync_names().map_err(StoreError::io(format!("sync the name of {}", intents::FILE)))
}

/// Already gone is as good: one remedy may have done what another wanted.
fn remove(disk: &dyn Disk, name: &str) -> Result<()> {
    match disk.remove(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::io(format!("remove {name}"))(error))
        }
        _ => disk.sync_names().map_err(StoreError::io(format!("sync the removal of {name}"))),
    }
}
