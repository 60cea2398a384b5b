//! Reading, writing, zeroing and flushing the volume. This is the hot path: a block that the head holds costs one
//! lookup and one system call, and nothing here allocates memory.

use std::sync::Arc;

use super::error::{Result, StoreError};
use super::layer::Layer;
use super::state::Store;
use super::stripes::{STRIPE, pieces};
use super::view::{Found, View, locate};
use crate::geometry::{BLOCK, Range};
use crate::wire::message::RunKind;

/// Masks of this much volume are synced together before anything under them is dropped.
const ZERO_SPAN: u64 = 1 << 30;

static ZEROES: [u8; 1 << 20] = [0; 1 << 20];

impl Store {
    /// Fills the buffer, which is as long as the range.
    pub fn read_into(&self, range: Range, into: &mut [u8]) -> Result<()> {
        let view = self.view.load();
        check_buffer(&view, range, into.len())?;
        read_chain(&view.chain, range, into, |layer, offset, into| {
            layer.data.read_at(offset, into).map(|()| true)
        })?;
        self.usable()
    }

    /// [`Store::read_into`] if that needs no disk access. `false`: it would have; the buffer holds nothing of use.
    pub fn read_cached(&self, range: Range, into: &mut [u8]) -> Result<bool> {
        let view = self.view.load();
        check_buffer(&view, range, into.len())?;
        let found =
            read_chain(&view.chain, range, into, |layer, offset, into| layer.data.read_cached(offset, into))?;
        self.usable().map(|()| found)
    }

    /// With the operating system when it returns. After `NoSpace` and a bad range everything is as it was; after any
    /// other error the replica takes no more changes.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let range = Range::new(offset, data.len() as u64);
        self.change_content(range, |view| {
            self.take_space(view.head(), range)?;
            self.put(view.head(), offset, data)
        })
    }

    /// The range reads as zero when it returns. The space is given back; with `allocate`, taken.
    pub fn zero(&self, range: Range, allocate: bool) -> Result<()> {
        self.change_content(range, |view| {
            if !allocate {
                return self.discard(view, range);
            }
            self.take_space(view.head(), range)?;
            for piece in pieces(range, ZEROES.len() as u64) {
                self.put(view.head(), piece.offset, &ZEROES[..piece.len as usize])
                    .map_err(|error| self.in_part(piece.offset > range.offset, error))?;
            }
            Ok(())
        })
    }

    /// The range was written and will be flushed soon: its way to the disk may begin.
    pub fn send_ahead(&self, range: Range) {
        self.view.load().head().data.send_ahead(range.offset..range.end());
    }

    /// Everything that returned before this was called is on disk when this returns. Concurrent calls share a sync.
    pub fn flush(&self) -> Result<()> {
        self.usable()?;
        // A head that is replaced is synced by whoever replaces it.
        self.flusher.run(|| {
            let head = self.view.load().head().clone();
            self.sync_layer(&head)
        })?;
        self.usable()
    }

    fn change_content(&self, range: Range, change: impl FnOnce(&View) -> Result<()>) -> Result<()> {
        self.usable()?;
        let _gate = self.gate.read();
        let view = self.view.load();
        view.check(range)?;
        change(&view)
    }

    pub(super) fn take_space(&self, layer: &Layer, range: Range) -> Result<()> {
        let blocks = range.blocks();
        let missing = blocks.end - blocks.start - layer.data_count(blocks);
        self.space.take(&*self.disk, missing * BLOCK)
    }

    fn put(&self, head: &Layer, offset: u64, bytes: &[u8]) -> Result<()> {
        let _stripe = self.stripes.share(offset);
        self.put_pieces(head, offset, bytes)
    }

    /// First, piece after piece, what takes new space; when that has been had for all of them, what replaces something.
    /// So what does not fit can be taken back. Nobody moves blocks meanwhile: the stripes of all pieces are held.
    fn put_pieces(&self, head: &Layer, offset: u64, bytes: &[u8]) -> Result<()> {
        let action = || format!("write to layer {}", head.id);
        let here = bytes.len().min((STRIPE - offset % STRIPE) as usize);
        let (bytes, rest) = bytes.split_at(here);
        let piece = Range::new(offset, here as u64);
        let new = head
            .put_new(offset, bytes)
            .map_err(|error| self.without_room(error, || head.take_back(piece.blocks()), action))?;
        let written = if rest.is_empty() {
            Ok(())
        } else {
            let _stripe = self.stripes.share_too(piece.end());
            self.put_pieces(head, piece.end(), rest)
        };
        let written = written.and_then(|()| {
            head.put_rest(offset, bytes, new).map_err(|error| {
                let error = self.without_room(error, || Ok(()), action);
                self.in_part(true, error)
            })
        });
        if written.is_err() {
            head.take_back(piece.blocks()).map_err(self.failed(action))?;
        }
        written
    }

    /// 1. masks over everything older that would show through are on disk, 2. the head's own blocks are dropped.
    ///
    /// A crash in between leaves the head's blocks, which win over its mask: each block is old or zero.
    ///
    /// While a rebuild fills the older layers, what they will hold is not known yet: then everything is masked.
    fn discard(&self, view: &View, range: Range) -> Result<()> {
        let mut at = range.offset;
        let filling = view.is_filling();
        let next = |rest: Range| if filling { Some(rest.offset) } else { next_content(view, rest) };
        let mut begun = false;
        while let Some(start) = next(Range::new(at, range.end() - at)) {
            let span = Range::new(start, (range.end() - start).min(ZERO_SPAN));
            for piece in pieces(span, u64::MAX) {
                let _alone = self.stripes.alone(piece.offset);
                self.hide_below(view, piece, &mut begun)?;
            }
            let head = view.head();
            head.sync_mask().map_err(self.failed(|| format!("sync the mask of layer {}", head.id)))?;
            for piece in pieces(span, u64::MAX) {
                let _alone = self.stripes.alone(piece.offset);
                head.drop_data(piece.blocks())
                    .map_err(self.failed(|| format!("drop blocks of layer {}", head.id)))?;
            }
            begun = true;
            at = span.end();
            if at == range.end() {
                break;
            }
        }
        Ok(())
    }

    fn hide_below(&self, view: &View, piece: Range, begun: &mut bool) -> Result<()> {
        let (head, below) = (view.head(), &view.chain[1..]);
        let mut blocks = piece.blocks();
        while !blocks.is_empty() {
            let (found, end) = locate(below, blocks.clone());
            let (masked, end) = head.masked_run(blocks.start..end);
            if (matches!(found, Found::Data(_)) || view.is_filling()) && !masked {
                let action = || format!("write the mask of layer {}", head.id);
                head.set_mask(blocks.start..end, true)
                    .map_err(|error| self.without_room(error, || Ok(()), action))
                    .map_err(|error| self.in_part(*begun, error))?;
                *begun = true;
            }
            blocks.start = end;
        }
        Ok(())
    }
}

/// Where the first block is that does not read as zero already, or that takes up space in the head.
fn next_content(view: &View, range: Range) -> Option<u64> {
    let mut blocks = range.blocks();
    while !blocks.is_empty() {
        let (found, end) = locate(&view.chain, blocks.clone());
        if let Found::Data(_) = found {
            return Some(blocks.start * BLOCK);
        }
        blocks.start = end;
    }
    None
}

fn check_buffer(view: &View, range: Range, len: usize) -> Result<()> {
    view.check(range)?;
    if range.len == len as u64 {
        Ok(())
    } else {
        Err(StoreError::Invalid(format!("a buffer of {len} bytes for a range of {}", range.len)))
    }
}

/// Fills the buffer from whichever layers have the say. Stops early, with `false`, when `read` says so.
pub(super) fn read_chain(
    chain: &[Arc<Layer>],
    range: Range,
    into: &mut [u8],
    read: impl Fn(&Layer, u64, &mut [u8]) -> std::io::Result<bool>,
) -> Result<bool> {
    let mut blocks = range.blocks();
    while !blocks.is_empty() {
        let (found, end) = locate(chain, blocks.clone());
        let part = (blocks.start * BLOCK - range.offset) as usize..(end * BLOCK - range.offset) as usize;
        match found {
            Found::Zero | Found::Absent => into[part].fill(0),
            Found::Data(layer) => {
                let offset = blocks.start * BLOCK;
                let done = read(layer, offset, &mut into[part]).map_err(|source| StoreError::Io {
                    action: format!("read layer {}", layer.id),
                    source,
                })?;
                if !done {
                    return Ok(false);
                }
            }
        }
        blocks.start = end;
    }
    Ok(true)
}

impl RunKind {
    pub(super) const fn of(found: &Found<'_>) -> Self {
        match found {
            Found::Data(_) => Self::Data,
            Found::Zero => Self::Zero,
            Found::Absent => Self::Absent,
        }
    }
}
