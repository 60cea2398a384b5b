//! What is in a directory, for people: read-only, also while the volume is in use, and also when it is damaged.

use std::collections::HashSet;
use std::io;

use serde::Serialize;

use super::intents;
use super::layer::{load, mask_len};
use super::metadata::{self, LayerRecord, Metadata, mask_file};
use super::segments;
use crate::disk::Disk;
use crate::geometry::BLOCK;
use crate::wire::message::Regions;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    pub directory: String,
    /// The process that has it open.
    pub in_use_by: Option<u32>,
    /// `None` when it cannot be read; `problems` tells why.
    pub metadata: Option<Metadata>,
    pub layers: Vec<LayerReport>,
    /// Regions with writes that may be on some replicas only.
    pub intents: Vec<Regions>,
    pub free: u64,
    pub problems: Vec<Problem>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LayerReport {
    pub id: crate::ids::LayerId,
    /// The snapshot's name; `None` for the head and inherited layers.
    pub snapshot: Option<String>,
    pub is_head: bool,
    /// Bytes of content, and how many runs they are in.
    pub data: u64,
    pub runs: u64,
    /// Bytes below which nothing shows through.
    pub hidden: u64,
    /// Bytes on disk.
    pub allocated: u64,
    /// Directory entries of the content; more than one when a clone shares it.
    pub links: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Problem {
    MetadataMissing,
    MetadataUnreadable {
        reason: String,
    },
    /// A replacement of the metadata was interrupted. `good`: it is whole, and could take the place.
    InterruptedReplacement {
        good: bool,
    },
    FileMissing {
        name: String,
    },
    FileTooShort {
        name: String,
        found: u64,
        expected: u64,
    },
    FileUnreadable {
        name: String,
        reason: String,
    },
    /// A file of no known layer.
    Leftover {
        name: String,
        data: u64,
    },
    Backing {
        path: String,
        reason: String,
    },
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::MetadataMissing => write!(f, "{} is missing", metadata::FILE),
            Self::MetadataUnreadable { reason } => write!(f, "{} cannot be used: {reason}", metadata::FILE),
            Self::InterruptedReplacement { good } => {
                let state = if *good { "whole" } else { "torn" };
                write!(f, "{} was left by an interrupted change and is {state}", metadata::TEMPORARY)
            }
            Self::FileMissing { name } => write!(f, "{name} is missing"),
            Self::FileTooShort { name, found, expected } => {
                write!(f, "{name} has {found} bytes instead of {expected}")
            }
            Self::FileUnreadable { name, reason } => write!(f, "{name} cannot be read: {reason}"),
            Self::Leftover { name, data } => write!(f, "{name} belongs to no layer and holds {data} bytes"),
            Self::Backing { path, reason } => write!(f, "backing image {path}: {reason}"),
        }
    }
}

/// Looks at a directory without changing, creating or locking anything. An error means that not even the directory
/// can be read; everything else is a problem in the report.
pub fn inspect(disk: &dyn Disk) -> io::Result<Inspection> {
    let names = disk.names()?;
    let mut report = Inspection {
        directory: disk.describe(),
        in_use_by: disk.lock_holder()?,
        metadata: None,
        layers: Vec::new(),
        intents: Vec::new(),
        free: disk.space()?.free,
        problems: Vec::new(),
    };
    if names.iter().any(|name| name == metadata::FILE) {
        match Metadata::load(disk) {
            Ok(meta) => report.metadata = Some(meta),
            Err(error) => report.problems.push(Problem::MetadataUnreadable { reason: error.to_string() }),
        }
    } else {
        report.problems.push(Problem::MetadataMissing);
    }
    if names.iter().any(|name| name == metadata::TEMPORARY) {
        report.problems.push(Problem::InterruptedReplacement { good: temporary(disk).is_some() });
    }
    if let Some(meta) = report.metadata.clone() {
        report.look_at_layers(disk, &meta);
        report.look_at_leftovers(disk, &meta, &names);
        report.look_at_intents(disk);
    }
    Ok(report)
}

/// The metadata that an interrupted replacement left, if it is whole.
pub(super) fn temporary(disk: &dyn Disk) -> Option<Metadata> {
    let file = disk.open_read_only(metadata::TEMPORARY).ok()?;
    let mut bytes = vec![0; file.size().ok()? as usize];
    file.read_at(0, &mut bytes).ok()?;
    Metadata::parse(&bytes, &disk.describe()).ok()
}

impl Inspection {
    fn look_at_layers(&mut self, disk: &dyn Disk, meta: &Metadata) {
        for record in &meta.layers {
            match look_at_layer(disk, record, record.id == meta.head) {
                Ok(layer) => self.layers.push(layer),
                Err(problem) => self.problems.push(problem),
            }
        }
    }

    fn look_at_leftovers(&mut self, disk: &dyn Disk, meta: &Metadata, names: &[String]) {
        let doomed =
            meta.doomed.iter().flat_map(|files| segments::all_names(*files).chain([mask_file(*files)]));
        let known: HashSet<String> = meta.layers.iter().flat_map(LayerRecord::names).chain(doomed).collect();
        for name in names.iter().filter(|name| name.starts_with("layer-") && !known.contains(*name)) {
            let data = disk.open_read_only(name).and_then(|file| file.allocated()).unwrap_or(0);
            self.problems.push(Problem::Leftover { name: name.clone(), data });
        }
    }

    fn look_at_intents(&mut self, disk: &dyn Disk) {
        let read = || {
            let file = disk.open_read_only(intents::FILE)?;
            let mut bytes = vec![0; file.size()? as usize];
            file.read_at(0, &mut bytes)?;
            Ok(bytes)
        };
        match read() {
            Ok(bytes) => self.intents = intents::runs(&bytes),
            Err(error) => self.problems.push(unreadable(intents::FILE, &error)),
        }
    }
}

fn look_at_layer(disk: &dyn Disk, record: &LayerRecord, is_head: bool) -> Result<LayerReport, Problem> {
    let (name, data) = match &record.backing {
        Some(backing) => {
            let problem = |reason: String| Problem::Backing { path: backing.path.clone(), reason };
            let (file, identity) =
                disk.open_image(&backing.path).map_err(|error| problem(error.to_string()))?;
            if identity != backing.identity {
                return Err(problem("it is not the one the volume was made on".to_owned()));
            }
            (backing.path.clone(), file)
        }
        None => {
            let parts = (0..segments::count(record.size))
                .map(|segment| {
                    let len = segments::segment_len(record.size, segment);
                    open_checked(disk, &segments::name(record.files, segment), len)
                })
                .collect::<Result<_, _>>()?;
            (segments::name(record.files, 0), segments::join(parts))
        }
    };
    let mask = match record.backing {
        Some(_) => None,
        None => Some(open_checked(disk, &mask_file(record.files), mask_len(record.size))?),
    };
    let look = || {
        let index = load(&*data, mask.as_deref(), record.size)?;
        let mut runs = 0;
        let mut at = 0;
        while let Some(run) = index.data.next(at..u64::MAX) {
            runs += 1;
            at = run.end;
        }
        Ok(LayerReport {
            id: record.id,
            snapshot: record.snapshot.as_ref().map(|snapshot| snapshot.name.clone()),
            is_head,
            data: index.data.len() * BLOCK,
            runs,
            hidden: index.mask.len() * BLOCK,
            allocated: data.allocated()?,
            links: data.links()?,
        })
    };
    look().map_err(|error| unreadable(&name, &error))
}

fn open_checked(
    disk: &dyn Disk,
    name: &str,
    expected: u64,
) -> Result<std::sync::Arc<dyn crate::disk::File>, Problem> {
    let file = disk.open_read_only(name).map_err(|error| unreadable(name, &error))?;
    let found = file.size().map_err(|error| unreadable(name, &error))?;
    if found < expected {
        return Err(Problem::FileTooShort { name: name.to_owned(), found, expected });
    }
    Ok(file)
}

fn unreadable(name: &str, error: &io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::NotFound => Problem::FileMissing { name: name.to_owned() },
        _ => Problem::FileUnreadable { name: name.to_owned(), reason: error.to_string() },
    }
}
