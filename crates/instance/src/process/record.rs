//! What is kept of a run on disk, so that the next instance manager finds the process again. One file each, named by
//! the run; it appears before the process does and goes when the process is forgotten.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::plan::Plan;
use super::spec::Spec;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    pub run: String,
    pub spec: Spec,
    pub plan: Plan,
    pub port_start: u16,
    /// Where in its log this run begins.
    pub log_from: u64,
    pub boot: String,
    /// Number and start time, once it has them.
    pub process: Option<(u32, u64)>,
    /// It has said that it serves.
    pub ready: bool,
    /// Where an engine's volume is reached, as far as is known here.
    pub places: Vec<String>,
    /// It was asked to stop, and is to be forgotten.
    pub deleting: bool,
    /// The run it is to replace, until it has.
    pub replaces: Option<String>,
}

fn path(directory: &Path, run: &str) -> PathBuf {
    directory.join(format!("{run}.json"))
}

impl Record {
    /// Whole or not at all. After a crash of the machine there are no processes to be found, so nothing is synced.
    pub fn save(&self, directory: &Path) -> io::Result<()> {
        let path = path(directory, &self.run);
        let fresh = path.with_extension("new");
        std::fs::write(&fresh, serde_json::to_vec_pretty(self)?)?;
        std::fs::rename(&fresh, &path)
    }

    pub fn remove(directory: &Path, run: &str) -> io::Result<()> {
        match std::fs::remove_file(path(directory, run)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Those that can be read; what cannot is told and left where it is.
    pub fn load_all(directory: &Path) -> io::Result<Vec<Self>> {
        let mut records = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match std::fs::read(&path)
                .map_err(serde_json::Error::io)
                .and_then(|text| serde_json::from_slice(&text))
            {
                Ok(record) => records.push(record),
                Err(error) => {
                    tracing::error!(path = %path.display(), %error, "what this says of a process is lost");
                }
            }
        }
        Ok(records)
    }
}
