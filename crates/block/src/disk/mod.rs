//! What the store asks of a file system: files in one directory, with explicit durability.
//! The store touches the outside only through this, so that tests can lose what was not synced.

use std::io;
use std::ops::Range;
use std::sync::Arc;

/// One directory. Names are plain file names; creating, renaming, linking and removing become durable with
/// [`Disk::sync_names`].
pub trait Disk: Send + Sync + 'static {
    /// Opens for reading and writing; a file that is not there is an error.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;
    /// Makes a new, empty file; one that is there already is an error.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;
    /// Replaces `to` in one step.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    fn names(&self) -> io::Result<Vec<String>>;
    fn sync_names(&self) -> io::Result<()>;
    /// Bytes that can still be written to the file system.
    fn free_space(&self) -> io::Result<u64>;
}

/// One sparse file. What was written is seen by every later read at once and is on disk after [`File::sync`].
pub trait File: Send + Sync + 'static {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
    /// Reads only if that needs no disk access; `false` means that it would have.
    fn read_cached(&self, offset: u64, into: &mut [u8]) -> io::Result<bool>;
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Gives the space back; the range reads as zero and is no longer data.
    fn punch(&self, range: Range<u64>) -> io::Result<()>;
    /// Data and the extents that hold it.
    fn sync(&self) -> io::Result<()>;
    fn set_len(&self, len: u64) -> io::Result<()>;
    fn len(&self) -> io::Result<u64>;
    /// The first run of data at or after `offset`, in whole blocks as the file system keeps them.
    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>>;
    /// Bytes the file occupies.
    fn allocated(&self) -> io::Result<u64>;
    /// How many directory entries share it: more than one means that another volume reads it too.
    fn links(&self) -> io::Result<u64>;
}
