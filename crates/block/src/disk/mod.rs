//! What the store asks of a file system: files in one directory, with explicit durability.
//! The store touches the outside only through this, so that tests can lose what was not synced.

use std::any::Any;
use std::io;
use std::ops::Range;
use std::sync::Arc;

pub mod directory;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;

/// One directory. Names are plain file names; creating, renaming, linking and removing become durable with
/// [`Disk::sync_names`].
pub trait Disk: Any + Send + Sync {
    /// What a person calls it: its path.
    fn describe(&self) -> String;
    /// Keeps everybody else from opening the directory until the guard is dropped.
    fn lock(&self) -> Result<LockGuard, LockError>;
    /// Who holds the lock, found without taking it.
    fn lock_holder(&self) -> io::Result<Option<u32>>;
    /// Opens for reading and writing; a file that is not there is an error.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;
    fn open_read_only(&self, name: &str) -> io::Result<Arc<dyn File>>;
    /// Opens a file that others own, anywhere on the machine, for reading; with what tells it from a changed one.
    fn open_image(&self, path: &str) -> io::Result<(Arc<dyn File>, ImageIdentity)>;
    /// Makes a new, empty file; one that is there already is an error.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;
    /// Gives the file a second name, the same one, in another directory. An error of kind
    /// [`CrossesDevices`](io::ErrorKind::CrossesDevices) says that the two are not on one file system.
    fn link(&self, name: &str, into: &dyn Disk) -> io::Result<()>;
    /// Replaces `to` in one step.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    fn names(&self) -> io::Result<Vec<String>>;
    fn sync_names(&self) -> io::Result<()>;
    fn space(&self) -> io::Result<Space>;
    /// The size of the file system's blocks, the unit in which it keeps or loses data.
    fn block_size(&self) -> io::Result<u64>;
    /// Changes when the machine restarts, that is, when what was not synced may be gone.
    fn boot_id(&self) -> io::Result<String>;
}

/// One sparse file. What was written is seen by every later read at once and is on disk after [`File::sync`].
pub trait File: Send + Sync + 'static {
    /// Fills the buffer; what lies beyond the end of the file reads as zero.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
    /// Reads only if that needs no disk access; `false` means that it would have.
    fn read_cached(&self, offset: u64, into: &mut [u8]) -> io::Result<bool>;
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Gives the space back; the range reads as zero and is no longer data.
    fn punch(&self, range: Range<u64>) -> io::Result<()>;
    /// Data and the extents that hold it.
    fn sync(&self) -> io::Result<()>;
    /// The range will be synced soon: its way to the disk may begin. Only a hint, and does not wait.
    fn send_ahead(&self, _range: Range<u64>) {}
    fn set_len(&self, len: u64) -> io::Result<()>;
    fn size(&self) -> io::Result<u64>;
    /// The first run of data at or after `offset`, in whole blocks as the file system keeps them.
    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>>;
    /// Bytes the file occupies.
    fn allocated(&self) -> io::Result<u64>;
    /// How many directory entries share it: more than one means that another volume reads it too.
    fn links(&self) -> io::Result<u64>;
    /// The range will not be read again soon: it need not stay in memory. Only a hint.
    fn forget(&self, _range: Range<u64>) {}
}

/// Room on the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes that can still be written.
    pub free: u64,
    pub total: u64,
}

/// What tells an image file from one that was changed or replaced.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageIdentity {
    pub size: u64,
    pub modified: jiff::Timestamp,
}

/// Held for as long as the directory is open; the kernel lets go of it even after `kill -9`.
pub type LockGuard = Box<dyn Any + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("held by {}", .0.map_or("another process".to_owned(), |pid| format!("process {pid}")))]
    Held(Option<u32>),
    #[error(transparent)]
    Io(#[from] io::Error),
}
