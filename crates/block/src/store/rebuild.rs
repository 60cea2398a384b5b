//! Layers as themselves: what a replica that is being rebuilt compares and fills, and what it is filled from.
//! Only incomplete layers, and the head of a replica under rebuild, are ever written to here.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use uuid::Uuid;

use super::content::runs;
use super::error::{Result, StoreError};
use super::layer::Layer;
use super::metadata::{LayerRecord, Metadata};
use super::open::{backing_record, check_size};
use super::options::BackingOptions;
use super::segments;
use super::state::Store;
use super::stripes::pieces;
use super::view::Layers;
use crate::geometry::{BLOCK, MAX_IO, Range};
use crate::ids::LayerId;
use crate::wire::message::{self, Run, RunKind};

/// Enough to tell chunks apart, half of what the hash gives.
const DIGEST: usize = 16;

impl Store {
    /// Makes this the beginning of a copy of another replica: that tree, that size, not usable until the membership
    /// says so. A frozen layer that is complete and has the same identity and history is kept as it is. Any other
    /// layer is incomplete; what it holds is only something to compare with. Durable before it returns.
    pub fn adopt(&self, size: u64, wanted: &[message::Layer], head: LayerId) -> Result<()> {
        check_size(size)?;
        self.stop_purge();
        let change = self.begin()?;
        let _gate = self.gate.write();
        let old = change.meta();
        let mut layers = Layers::new();
        let mut meta =
            Metadata { size, head, clean: false, rebuilding: true, layers: Vec::new(), ..old.clone() };
        for layer in wanted {
            meta.layers.push(self.adopted_record(&old, layer, size, head)?);
        }
        meta.check().map_err(StoreError::Tree)?;
        for record in &meta.layers {
            let kept = old.layer(record.id).is_some_and(|known| known.files == record.files);
            let layer = match self.view.load().layers.get(&record.id).filter(|_| kept) {
                Some(layer) => layer.clone(),
                None if record.backing.is_some() => Arc::new(Layer::open(&*self.disk, record)?),
                None => Arc::new(Layer::create(&*self.disk, record)?),
            };
            if !record.complete {
                layer.grow(record.size).map_err(self.failed(|| format!("grow layer {}", record.id)))?;
            }
            layers.insert(record.id, layer);
        }
        self.intents.grow(size)?;
        self.disk.sync_names().map_err(StoreError::io("sync the adopted layers' names"))?;
        let stays = |files: Uuid| meta.layers.iter().any(|record| record.files == files);
        let dropped = old.layers.iter().filter(|known| known.backing.is_none() && !stays(known.files));
        meta.doomed.extend(dropped.map(|known| known.files).collect::<Vec<_>>());
        change.commit(meta, layers)?;
        // Before the gate opens: nothing is filled that a reader of the old tree would not notice.
        self.adoptions.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// What one wanted layer becomes here.
    fn adopted_record(
        &self,
        old: &Metadata,
        wanted: &message::Layer,
        size: u64,
        head: LayerId,
    ) -> Result<LayerRecord> {
        let known = old.layer(wanted.id);
        if let Some(path) = &wanted.backing {
            let kept = known.filter(|known| known.backing.as_ref().is_some_and(|it| it.path == *path));
            let options = || BackingOptions { path: path.clone(), layer: wanted.id };
            return kept.cloned().map_or_else(|| backing_record(&*self.disk, options(), size), Ok);
        }
        let mut record = LayerRecord {
            absorbed: wanted.absorbed.clone(),
            snapshot: wanted.snapshot.clone(),
            removed: wanted.removed,
            complete: false,
            ..LayerRecord::empty(wanted.id, wanted.parent, wanted.size)
        };
        let Some(known) = known.filter(|known| known.backing.is_none()) else {
            if self.is_taken(old, record.files) {
                record.files = Uuid::new_v4();
            }
            return Ok(record);
        };
        let frozen = known.id != old.head && wanted.id != head;
        if frozen
            && wanted.complete
            && known.complete
            && known.absorbed == wanted.absorbed
            && known.size == wanted.size
        {
            record.complete = true;
            record.files = known.files;
            return Ok(record);
        }
        let view = self.view.load();
        let (layer, _) = view.layer(known.id)?;
        let shared = layer.is_shared().map_err(StoreError::io(format!("look at layer {}", known.id)))?;
        // A clone's files are not ours to change, what lies beyond a smaller size could come back, and a much larger
        // layer is made of more files.
        let fits = known.size <= wanted.size && segments::count(known.size) == segments::count(wanted.size);
        record.files = if shared || !fits { Uuid::new_v4() } else { known.files };
        Ok(record)
    }

    fn is_taken(&self, old: &Metadata, files: Uuid) -> bool {
        old.doomed.contains(&files) || old.layers.iter().any(|known| known.files == files)
    }

    /// The layer has all its content, on disk.
    pub fn layer_complete(&self, id: LayerId) -> Result<()> {
        let change = self.begin()?;
        let view = self.view.load();
        let (layer, record) = view.layer(id)?;
        if record.complete {
            return Ok(());
        }
        self.sync_layer(layer)?;
        let mut meta = change.meta();
        if let Some(record) = meta.layer_mut(id) {
            record.complete = true;
        }
        let layers = change.layers();
        change.commit(meta, layers)?;
        layer.optimise();
        Ok(())
    }

    /// What one layer itself says of a range. The runs cover the range.
    pub fn layer_runs(&self, id: LayerId, range: Range) -> Result<Vec<Run>> {
        let view = self.view.load();
        view.check(range)?;
        let (layer, _) = view.layer(id)?;
        Ok(runs(range, |blocks| layer.run(blocks)))
    }

    /// [`Store::layer_runs`] with the content of the data runs, one after the other.
    pub fn layer_read(&self, id: LayerId, range: Range) -> Result<(Vec<Run>, Bytes)> {
        if range.len > u64::from(MAX_IO) {
            return Err(StoreError::Invalid(format!("{} bytes are more than {MAX_IO} at a time", range.len)));
        }
        let found = self.layer_runs(id, range)?;
        let view = self.view.load();
        let (layer, _) = view.layer(id)?;
        let is_head = id == view.meta.head;
        let data = || found.iter().filter(|run| run.kind == RunKind::Data).map(|run| run.range);
        let mut bytes = vec![0; data().map(|range| range.len).sum::<u64>() as usize];
        let mut filled = 0;
        for part in data() {
            let into = &mut bytes[filled..filled + part.len as usize];
            let read = if is_head {
                layer.data.read_at(part.offset, into)
            } else {
                layer.read_aside(part.offset, into)
            };
            read.map_err(StoreError::io(format!("read layer {id}")))?;
            filled += part.len as usize;
        }
        self.usable()?;
        Ok((found, bytes.into()))
    }

    /// 16 bytes for each chunk of the range: equal when the layers say the same of it.
    pub fn layer_digests(&self, id: LayerId, range: Range, chunk: u64) -> Result<Bytes> {
        if chunk == 0 || !chunk.is_multiple_of(BLOCK) || chunk > u64::from(MAX_IO) {
            return Err(StoreError::Invalid(format!(
                "a chunk of {chunk} bytes is not whole blocks, or too large"
            )));
        }
        self.view.load().check(range)?;
        let mut digests = Vec::with_capacity(range.len.div_ceil(chunk) as usize * DIGEST);
        let mut at = range.offset;
        while at < range.end() {
            let part = Range::new(at, chunk.min(range.end() - at));
            let (found, bytes) = self.layer_read(id, part)?;
            digests.extend_from_slice(&digest(part, &found, &bytes));
            at = part.end();
        }
        Ok(digests.into())
    }

    /// Makes the layer say exactly this of the ranges named; `data` is the content of the data runs. What does not fit
    /// leaves some of it done: whoever fills a layer compares before it counts on anything.
    pub fn layer_write(&self, id: LayerId, wanted: &[Run], data: &[u8]) -> Result<()> {
        self.usable()?;
        let _gate = self.gate.read();
        let view = self.view.load();
        let (layer, record) = view.layer(id)?;
        let open = !record.complete || (view.meta.rebuilding && id == view.meta.head);
        if !open || layer.is_backing() {
            return Err(StoreError::LayerFrozen(id));
        }
        for run in wanted {
            let most = if run.kind == RunKind::Absent { view.meta.size } else { record.size };
            if !run.range.fits(most) {
                return Err(StoreError::OutOfRange { range: run.range, size: record.size });
            }
        }
        let is_data = |run: &&Run| run.kind == RunKind::Data;
        let expected: u64 = wanted.iter().filter(is_data).map(|run| run.range.len).sum();
        if expected != data.len() as u64 {
            return Err(StoreError::Invalid(format!("{} bytes for data runs of {expected}", data.len())));
        }
        for run in wanted.iter().filter(is_data) {
            self.take_space(layer, run.range)?;
        }
        let mut rest = data;
        for run in wanted {
            for piece in pieces(run.range, u64::MAX) {
                let content = if run.kind == RunKind::Data { piece.len as usize } else { 0 };
                let (bytes, after) = rest.split_at(content);
                rest = after;
                let _alone = self.stripes.alone(piece.offset);
                set_piece(layer, piece, run.kind, bytes).map_err(|error| {
                    let undo = || layer.take_back(piece.blocks());
                    self.without_room(error, undo, || format!("write to layer {id}"))
                })?;
            }
        }
        Ok(())
    }
}

fn set_piece(layer: &Layer, piece: Range, kind: RunKind, bytes: &[u8]) -> std::io::Result<()> {
    match kind {
        RunKind::Data => layer.put(piece.offset, bytes),
        RunKind::Zero => {
            layer.set_mask(piece.blocks(), true)?;
            layer.drop_data(piece.blocks())
        }
        RunKind::Absent => {
            layer.drop_data(piece.blocks())?;
            if layer.next_masked(piece.blocks()).is_some() {
                layer.set_mask(piece.blocks(), false)?;
            }
            Ok(())
        }
    }
}

fn digest(chunk: Range, found: &[Run], bytes: &[u8]) -> [u8; DIGEST] {
    let mut hasher = blake3::Hasher::new();
    for run in found {
        let kind = match run.kind {
            RunKind::Absent => 0u8,
            RunKind::Zero => 1,
            RunKind::Data => 2,
        };
        hasher.update(&[kind]);
        hasher.update(&(run.range.offset - chunk.offset).to_le_bytes());
        hasher.update(&run.range.len.to_le_bytes());
    }
    hasher.update(bytes);
    let mut short = [0; DIGEST];
    short.copy_from_slice(&hasher.finalize().as_bytes()[..DIGEST]);
    short
}
