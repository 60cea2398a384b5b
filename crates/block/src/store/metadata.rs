//! `volume.json`: everything about a replica that is not content. Replaced as a whole, so that a crash leaves the
//! old one or the new one. Reads and writes that file only; never a layer.

use std::collections::HashSet;
use std::io;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::{Result, StoreError};
use super::segments;
use crate::disk::{Disk, ImageIdentity};
use crate::geometry::{BLOCK, MAX_VOLUME};
use crate::ids::{LayerId, ReplicaId};
use crate::wire::message::{Membership, SnapshotSpec};

pub(super) const FILE: &str = "volume.json";
pub(super) const TEMPORARY: &str = "volume.json.tmp";
pub(super) const FORMAT: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    pub format: u32,
    pub replica: ReplicaId,
    /// The name of the volume it is a replica of. `None` until an engine or the operator has said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    pub size: u64,
    pub head: LayerId,
    pub membership: Membership,
    pub clean: bool,
    pub rebuilding: bool,
    pub layers: Vec<LayerRecord>,
    /// Files of layers that are gone. They may still be there after a crash; the next open removes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doomed: Vec<Uuid>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LayerRecord {
    pub id: LayerId,
    /// Names the files. Mostly the layer's own id; a layer that took over a bigger one's files has theirs.
    pub files: Uuid,
    pub parent: Option<LayerId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absorbed: Vec<LayerId>,
    /// `None` for the head, a backing image, and what a clone inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotSpec>,
    #[serde(default)]
    pub removed: bool,
    pub complete: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing: Option<BackingRecord>,
    pub size: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackingRecord {
    pub path: String,
    pub identity: ImageIdentity,
}

/// What a failed replacement left behind.
pub(super) enum SaveError {
    /// The old metadata is in place.
    Unchanged(io::Error),
    /// Either may be found after a crash.
    Unknown(io::Error),
}

impl LayerRecord {
    /// The names of its files; none for a backing image, whose file is elsewhere.
    pub fn names(&self) -> Vec<String> {
        if self.backing.is_some() {
            return Vec::new();
        }
        segments::names(self.files, self.size).chain([mask_file(self.files)]).collect()
    }

    /// A layer that nothing has been written to.
    pub fn empty(id: LayerId, parent: Option<LayerId>, size: u64) -> Self {
        Self {
            id,
            files: id.0,
            parent,
            absorbed: Vec::new(),
            snapshot: None,
            removed: false,
            complete: true,
            backing: None,
            size,
        }
    }
}

impl Metadata {
    pub fn load(disk: &dyn Disk) -> Result<Self> {
        let file = match disk.open_read_only(FILE) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StoreError::NotAVolume { directory: disk.describe() });
            }
            Err(error) => return Err(StoreError::io(format!("open {FILE}"))(error)),
        };
        let read = || {
            let mut bytes = vec![0; file.size()? as usize];
            file.read_at(0, &mut bytes)?;
            Ok(bytes)
        };
        Self::parse(&read().map_err(StoreError::io(format!("read {FILE}")))?, &disk.describe())
    }

    pub fn parse(bytes: &[u8], directory: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let damaged = |problem: String| StoreError::Damaged { directory: directory.to_owned(), problem };
        let unreadable = |error: serde_json::Error| damaged(format!("{FILE} is not readable ({error})"));
        let found = serde_json::from_slice::<Version>(bytes).map_err(unreadable)?.format;
        if found != FORMAT {
            return Err(StoreError::UnknownFormat { directory: directory.to_owned(), found, known: FORMAT });
        }
        let meta: Self = serde_json::from_slice(bytes).map_err(unreadable)?;
        meta.check().map_err(damaged)?;
        Ok(meta)
    }

    /// 1. the new text is on disk under another name, 2. it takes the name, 3. the name is on disk.
    pub(super) fn save(&self, disk: &dyn Disk) -> Result<(), SaveError> {
        let text = serde_json::to_vec_pretty(self).map_err(|error| SaveError::Unchanged(error.into()))?;
        let write = || {
            match disk.remove(TEMPORARY) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let file = disk.create(TEMPORARY)?;
            file.write_at(0, &text)?;
            file.sync()
        };
        write().map_err(SaveError::Unchanged)?;
        disk.rename(TEMPORARY, FILE).map_err(SaveError::Unknown)?;
        disk.sync_names().map_err(SaveError::Unknown)
    }

    /// Whether the layers form one tree whose head is a leaf. The answer is a sentence for people.
    pub fn check(&self) -> Result<(), String> {
        if !is_size(self.size) {
            return Err(format!("the size {} is not possible", self.size));
        }
        let mut ids = HashSet::new();
        for layer in &self.layers {
            if !ids.insert(layer.id) {
                return Err(format!("layer {} is listed twice", layer.id));
            }
            if layer.size > self.size || !layer.size.is_multiple_of(BLOCK) {
                return Err(format!("layer {} has the impossible size {}", layer.id, layer.size));
            }
            if layer.backing.is_some() && layer.parent.is_some() {
                return Err(format!("layer {} is a backing image but not at the bottom", layer.id));
            }
        }
        if self.layer(self.head).is_none() {
            return Err(format!("the head {} is not among the layers", self.head));
        }
        if self.layers.iter().any(|layer| layer.parent == Some(self.head)) {
            return Err(format!("the head {} has a child", self.head));
        }
        for layer in &self.layers {
            let mut at = layer;
            let mut steps = 0;
            while let Some(parent) = at.parent {
                at = self
                    .layer(parent)
                    .ok_or_else(|| format!("layer {} stands on {parent}, which is not there", at.id))?;
                steps += 1;
                if steps > self.layers.len() {
                    return Err(format!("layer {} is its own ancestor", layer.id));
                }
            }
        }
        Ok(())
    }

    pub fn layer(&self, id: LayerId) -> Option<&LayerRecord> {
        self.layers.iter().find(|layer| layer.id == id)
    }

    pub fn layer_mut(&mut self, id: LayerId) -> Option<&mut LayerRecord> {
        self.layers.iter_mut().find(|layer| layer.id == id)
    }

    /// The listed snapshot of that name.
    pub fn snapshot(&self, name: &str) -> Option<&LayerRecord> {
        let named = |layer: &&LayerRecord| layer.snapshot.as_ref().is_some_and(|it| it.name == name);
        self.layers.iter().filter(|layer| !layer.removed).find(named)
    }

    pub fn children(&self, id: LayerId) -> impl Iterator<Item = &LayerRecord> {
        self.layers.iter().filter(move |layer| layer.parent == Some(id))
    }

    /// From that layer down to the bottom.
    pub fn ancestry(&self, id: LayerId) -> impl Iterator<Item = &LayerRecord> {
        std::iter::successors(self.layer(id), |layer| layer.parent.and_then(|parent| self.layer(parent)))
    }
}

pub(super) const fn is_size(size: u64) -> bool {
    size > 0 && size.is_multiple_of(BLOCK) && size <= MAX_VOLUME
}

pub(super) fn mask_file(files: Uuid) -> String {
    format!("layer-{files}.mask")
}
