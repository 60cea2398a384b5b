//! Objects as files below a directory, also one that is an NFS mount.
//! Must never show a file that is not complete and durable: temporary file, fsync, rename, fsync of the directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use jiff::Timestamp;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::open::OpenError;
use super::{Entry, Listing, Store, StoreError};

/// Names with a dot in front are nobody's object; Longhorn's tools do not list them either.
const TEMPORARY: &str = ".granary-";
/// No write takes this long, so whoever began it is gone.
const LEFTOVER_AGE: Duration = Duration::from_hours(24);
const WALK_AHEAD: usize = 256;

#[derive(Debug, Clone)]
pub struct DirectoryStore {
    root: PathBuf,
}

impl DirectoryStore {
    /// The directory has to exist: making it would hide that a mount is missing.
    pub fn open(root: &Path) -> Result<Self, OpenError> {
        let failed = |source| OpenError::NoDirectory { path: root.display().to_string(), source };
        let root = root.canonicalize().map_err(failed)?;
        if !root.is_dir() {
            return Err(failed(ErrorKind::NotADirectory.into()));
        }
        Ok(Self { root })
    }

    async fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        key: &str,
        work: impl FnOnce(&Files, &str) -> io::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let files = Files { root: self.root.clone() };
        let owned = key.to_owned();
        match tokio::task::spawn_blocking(move || work(&files, &owned)).await {
            Ok(result) => result.map_err(|error| StoreError::new(operation, key, error)),
            Err(stopped) => Err(StoreError::new(operation, key, stopped)),
        }
    }
}

#[async_trait]
impl Store for DirectoryStore {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        self.run("read", key, |files, key| present(fs::read(files.path(key)).map(Bytes::from))).await
    }

    async fn head(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.run("look at", key, |files, key| match present(fs::metadata(files.path(key)))? {
            Some(metadata) if metadata.is_file() => entry(key.to_owned(), &metadata).map(Some),
            _ => Ok(None),
        })
        .await
    }

    async fn put(&self, key: &str, data: Bytes) -> Result<(), StoreError> {
        self.run("write", key, move |files, key| files.write(key, &data, |from, to| fs::rename(from, to)))
            .await
    }

    async fn put_if_absent(&self, key: &str, data: Bytes) -> Result<bool, StoreError> {
        self.run("create", key, move |files, key| match files.write(key, &data, place_new) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            other => other.map(|()| true),
        })
        .await
    }

    async fn list(&self, directory: &str) -> Result<Listing, StoreError> {
        self.run("list", directory, Files::list).await
    }

    fn walk(&self, directory: &str) -> BoxStream<'_, Result<Entry, StoreError>> {
        let (sender, receiver) = mpsc::channel(WALK_AHEAD);
        let files = Files { root: self.root.clone() };
        let directory = directory.to_owned();
        tokio::task::spawn_blocking(move || {
            if let Err(error) = files.walk(&directory, &mut |entry| sender.blocking_send(Ok(entry)).is_ok()) {
                // If nobody listens any more, nobody misses the error.
                drop(sender.blocking_send(Err(StoreError::new("list", directory, error))));
            }
        });
        stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|entry| (entry, receiver))
        })
        .boxed()
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.run("delete", key, |files, key| sync_directory(&files.remove(key)?)).await
    }

    async fn delete_many(&self, keys: Vec<String>) -> Result<(), StoreError> {
        let Some(first) = keys.first().cloned() else { return Ok(()) };
        self.run("delete", &first, move |files, _| {
            keys.iter().try_for_each(|key| files.remove(key).map(drop))
        })
        .await
    }

    async fn remove_leftovers(&self, directory: &str) -> Result<u64, StoreError> {
        self.run("tidy up", directory, |files, directory| files.remove_leftovers(&files.path(directory)))
            .await
    }
}

/// The blocking half.
struct Files {
    root: PathBuf,
}

impl Files {
    fn path(&self, key: &str) -> PathBuf {
        self.root.join(key)
    }

    /// First the data is durable under a temporary name, then `place` gives it its own, then that name is durable.
    /// A crash leaves a file that nobody lists.
    fn write(
        &self,
        key: &str,
        data: &[u8],
        place: impl Fn(&Path, &Path) -> io::Result<()>,
    ) -> io::Result<()> {
        let path = self.path(key);
        let directory = path.parent().unwrap_or(&self.root);
        let temporary = directory.join(format!("{TEMPORARY}{}", Uuid::new_v4().simple()));
        let mut file = self.create_in(directory, &temporary)?;
        let written =
            file.write_all(data).and_then(|()| file.sync_all()).and_then(|()| place(&temporary, &path));
        if let Err(error) = written {
            // The first error says more than this one could.
            drop(fs::remove_file(&temporary));
            return Err(error);
        }
        sync_directory(directory)
    }

    fn create_in(&self, directory: &Path, path: &Path) -> io::Result<File> {
        let create = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        // Whoever deletes the last file of a directory deletes the directory, maybe right now.
        for _ in 0..16 {
            match create() {
                Err(error) if error.kind() == ErrorKind::NotFound => self.make_directory(directory)?,
                other => return other,
            }
        }
        create()
    }

    fn make_directory(&self, directory: &Path) -> io::Result<()> {
        if directory == self.root {
            return Err(io::Error::new(ErrorKind::NotFound, "the backup target's directory is gone"));
        }
        let parent = directory.parent().unwrap_or(&self.root);
        match fs::create_dir(directory) {
            Ok(()) => sync_directory(parent),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.make_directory(parent)?;
                match fs::create_dir(directory) {
                    Err(error) if !matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
                        Err(error)
                    }
                    _ => sync_directory(parent),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn list(&self, directory: &str) -> io::Result<Listing> {
        let mut listing = Listing::default();
        let Some(children) = present(fs::read_dir(self.path(directory)))? else { return Ok(listing) };
        for child in children {
            let child = child?;
            let Some(name) =
                child.file_name().to_str().filter(|name| !name.starts_with('.')).map(str::to_owned)
            else {
                continue;
            };
            match present(child.metadata())? {
                Some(metadata) if metadata.is_dir() => listing.directories.push(name),
                Some(metadata) if metadata.is_file() => {
                    listing.objects.push(entry(format!("{directory}/{name}"), &metadata)?);
                }
                _ => {}
            }
        }
        Ok(listing)
    }

    /// Stops when `sink` says that nobody listens.
    fn walk(&self, directory: &str, sink: &mut dyn FnMut(Entry) -> bool) -> io::Result<bool> {
        let listing = self.list(directory)?;
        for entry in listing.objects {
            if !sink(entry) {
                return Ok(false);
            }
        }
        for child in listing.directories {
            if !self.walk(&format!("{directory}/{child}"), sink)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Also removes directories that became empty. Returns the innermost one that is left.
    fn remove(&self, key: &str) -> io::Result<PathBuf> {
        let path = self.path(key);
        present(fs::remove_file(&path))?;
        let mut directory = path.parent().unwrap_or(&self.root);
        while directory != self.root {
            match fs::remove_dir(directory) {
                Err(error) if error.kind() != ErrorKind::NotFound => break,
                _ => directory = directory.parent().unwrap_or(&self.root),
            }
        }
        Ok(directory.to_owned())
    }

    fn remove_leftovers(&self, directory: &Path) -> io::Result<u64> {
        let mut removed = 0;
        for child in present(fs::read_dir(directory))?.into_iter().flatten() {
            let child = child?;
            let Some(metadata) = present(child.metadata())? else { continue };
            if metadata.is_dir() {
                removed += self.remove_leftovers(&child.path())?;
            } else if is_leftover(&child.file_name().to_string_lossy(), metadata.modified()?) {
                present(fs::remove_file(child.path()))?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

fn is_leftover(name: &str, modified: SystemTime) -> bool {
    name.starts_with(TEMPORARY) && modified.elapsed().is_ok_and(|age| age > LEFTOVER_AGE)
}

fn place_new(temporary: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(temporary, path) {
        Ok(()) => fs::remove_file(temporary),
        // Some network file systems know no hard links.
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) => {
            if path.try_exists()? {
                Err(ErrorKind::AlreadyExists.into())
            } else {
                fs::rename(temporary, path)
            }
        }
        Err(error) => Err(error),
    }
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    match present(File::open(directory))? {
        Some(handle) => handle.sync_all(),
        // Somebody removed it because it was empty; nothing of ours is in it.
        None => Ok(()),
    }
}

fn present<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn entry(key: String, metadata: &fs::Metadata) -> io::Result<Entry> {
    let modified = Timestamp::try_from(metadata.modified()?).map_err(io::Error::other)?;
    let version = format!("{}.{}-{}", metadata.mtime(), metadata.mtime_nsec(), metadata.ino());
    Ok(Entry { key, size: metadata.len(), modified, version })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::SystemTime;

    use super::{DirectoryStore, LEFTOVER_AGE, OpenError, TEMPORARY};
    use crate::store::Store;

    fn store() -> (tempfile::TempDir, DirectoryStore) {
        let directory = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open(directory.path()).unwrap();
        (directory, store)
    }

    #[test]
    fn a_missing_directory_is_not_made() {
        let (directory, _) = store();
        let refused = DirectoryStore::open(&directory.path().join("mount"));
        assert!(matches!(refused, Err(OpenError::NoDirectory { .. })));
        assert!(!directory.path().join("mount").exists());
    }

    #[tokio::test]
    async fn empty_directories_go_with_their_last_object() {
        let (directory, store) = store();
        store.put("a/b/one", "1".into()).await.unwrap();
        store.put("a/b/two", "2".into()).await.unwrap();
        store.delete("a/b/one").await.unwrap();
        assert!(directory.path().join("a/b").exists());
        store.delete("a/b/two").await.unwrap();
        assert!(!directory.path().join("a").exists());
        assert!(directory.path().exists());
    }

    #[tokio::test]
    async fn writers_survive_directories_that_vanish() {
        let (_directory, store) = store();
        let tasks = (0..8).map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                for round in 0..100 {
                    let key = format!("a/b/{}/{task}", round % 3);
                    store.put(&key, "x".into()).await.unwrap();
                    store.delete(&key).await.unwrap();
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    }

    #[tokio::test]
    async fn an_interrupted_write_is_not_listed_and_is_removed_when_old() {
        let (directory, store) = store();
        store.put("a/object", "1".into()).await.unwrap();
        let (fresh, old) = (
            directory.path().join(format!("a/{TEMPORARY}1")),
            directory.path().join(format!("a/{TEMPORARY}2")),
        );
        fs::write(&fresh, "half").unwrap();
        fs::write(&old, "half").unwrap();
        File::options()
            .write(true)
            .open(&old)
            .unwrap()
            .set_modified(SystemTime::now() - LEFTOVER_AGE * 2)
            .unwrap();
        assert_eq!(store.list("a").await.unwrap().objects.len(), 1);
        assert_eq!(store.remove_leftovers("a").await.unwrap(), 1);
        assert!(fresh.exists() && !old.exists());
    }
}
