//! What the volume holds as a whole: which parts are data, and a digest that does not depend on how it is layered.

use std::sync::Arc;

use super::error::Result;
use super::io::read_chain;
use super::layer::Layer;
use super::state::Store;
use super::view::locate;
use crate::geometry::{BLOCK, Range};
use crate::wire::message::{Run, RunKind};

/// The unit of the digest. A chunk without any byte set counts as a hole.
const CHUNK: u64 = 1 << 20;

impl Store {
    /// Which parts of a range hold data, through all layers. The runs cover the range.
    pub fn allocation(&self, range: Range) -> Result<Vec<Run>> {
        let view = self.view.load();
        view.check(range)?;
        Ok(runs(range, |blocks| {
            let (found, end) = locate(&view.chain, blocks);
            (RunKind::of(&found), end)
        }))
    }

    /// A digest, in hex, of the content as of a snapshot (`None`: now). Equal content has equal digests, however it
    /// came about and however it is layered. While writes go on, that of the present content means little.
    pub fn checksum(&self, snapshot: Option<&str>) -> Result<String> {
        let view = self.view.load_full();
        let (layer, size) = match snapshot {
            None => (view.head().clone(), view.meta.size),
            Some(name) => {
                let record = view.snapshot(name)?;
                (view.layer(record.id)?.0.clone(), record.size)
            }
        };
        let _pin = layer.pin.clone();
        let chain = view.chain_of(layer.id);
        let mut digest = blake3::Hasher::new();
        digest.update(&size.to_le_bytes());
        let mut buffer = vec![0; CHUNK as usize];
        let mut at = 0;
        while let Some(chunk) = next_chunk(&chain, at, size) {
            let bytes = &mut buffer[..chunk.len as usize];
            read_chain(&chain, chunk, bytes, |layer, offset, into| {
                layer.read_aside(offset, into).map(|()| true)
            })?;
            if bytes.iter().any(|byte| *byte != 0) {
                digest.update(&chunk.offset.to_le_bytes());
                digest.update(blake3::hash(bytes).as_bytes());
            }
            at = chunk.end();
        }
        Ok(digest.finalize().to_hex().to_string())
    }
}

/// The next chunk with any data in it. What is not data costs no reading, however much it is.
fn next_chunk(chain: &[Arc<Layer>], from: u64, size: u64) -> Option<Range> {
    let mut blocks = from / BLOCK..size / BLOCK;
    while !blocks.is_empty() {
        let (found, end) = locate(chain, blocks.clone());
        if RunKind::of(&found) == RunKind::Data {
            let start = blocks.start * BLOCK / CHUNK * CHUNK;
            return Some(Range::new(start, CHUNK.min(size - start)));
        }
        blocks.start = end;
    }
    None
}

/// The runs of a range, neighbours of one kind joined. `look` tells the kind of the first block and up to where.
pub(super) fn runs(range: Range, look: impl Fn(std::ops::Range<u64>) -> (RunKind, u64)) -> Vec<Run> {
    let mut found: Vec<Run> = Vec::new();
    let mut blocks = range.blocks();
    while !blocks.is_empty() {
        let (kind, end) = look(blocks.clone());
        let part = Range::of_blocks(blocks.start..end);
        match found.last_mut() {
            Some(run) if run.kind == kind => run.range.len += part.len,
            _ => found.push(Run { range: part, kind }),
        }
        blocks.start = end;
    }
    found
}
