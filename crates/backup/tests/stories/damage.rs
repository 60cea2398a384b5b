//! Blocks that are gone or not what they were, documents that make no sense: named, never restored, never built upon.

use std::path::Path;
use std::sync::Arc;

use granary_backup::{
    BlockPlace, Checksum, Damage, DirectoryStore, Error, Job, Layout, Repository, RestoreOnto,
    RestoreRequest, Store, Unsure,
};
use tokio_util::sync::CancellationToken;

use crate::disk::{Disk, Volume};
use crate::setup::{BLOCK, QUICK, name, repository, request, restore_and_compare, volume};

const SIZE: u64 = 8 * BLOCK;

struct Scene {
    _directory: tempfile::TempDir,
    store: Arc<dyn Store>,
    repository: Repository,
    disk: Disk,
}

/// Two backups; the second has another block 3.
async fn scene() -> Scene {
    let directory = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(DirectoryStore::open(Path::new(directory.path())).unwrap());
    let repository = repository(store.clone()).with_lock_timings(QUICK);
    let mut disk = Disk::new(SIZE);
    for chunk in 0..24 {
        disk.write(chunk, chunk as u8 + 1);
    }
    let mut scene = Scene { _directory: directory, store, repository, disk };
    scene.backup("backup-1").await.unwrap();
    scene.disk.write(12, 200);
    scene.backup("backup-2").await.unwrap();
    scene
}

impl Scene {
    async fn backup(&mut self, backup: &str) -> Result<granary_backup::BackupSummary, Error> {
        let source = self.disk.snapshot(&format!("snapshot-of-{backup}"));
        self.repository.backup(&request(backup), &source, &Job::default()).await
    }

    async fn restore(&self, backup: &str) -> Result<(), Error> {
        let request = RestoreRequest { volume: volume(), backup: name(backup), onto: RestoreOnto::Blank };
        self.repository.restore(&request, &Volume::blank(SIZE), &Job::default()).await.map(drop)
    }

    /// Where block 3 of the first backup lies.
    fn place(&self) -> BlockPlace {
        let content = &self.disk.snapshots["snapshot-of-backup-1"];
        let data: Vec<u8> = (12..16).flat_map(|chunk| content[&chunk].clone()).collect();
        let block = Checksum::of(&data);
        BlockPlace { volume: volume(), offset: 3 * BLOCK, block, key: Layout::new(&volume()).block(block) }
    }
}

#[tokio::test]
async fn a_missing_block_is_named() {
    let scene = scene().await;
    let place = scene.place();
    scene.store.delete(&place.key).await.unwrap();
    let error = scene.restore("backup-1").await.unwrap_err();
    assert!(matches!(&error, Error::BlockMissing(missing) if *missing == place), "{error:?}");
    for part in [volume().as_str(), &place.offset.to_string(), &place.block.to_hex(), &place.key] {
        assert!(error.to_string().contains(part), "{error}");
    }
    scene.restore("backup-2").await.unwrap();
    let swept = scene.repository.sweep(&volume(), &CancellationToken::new()).await.unwrap();
    assert_eq!(swept.missing, [place.block]);
}

#[tokio::test]
async fn a_damaged_block_is_named_whatever_the_damage() {
    let scene = scene().await;
    let place = scene.place();
    let good = scene.store.get(&place.key).await.unwrap().unwrap();
    let other = granary_backup::Compression::Lz4.pack(vec![7; BLOCK as usize].into()).unwrap();
    let long = granary_backup::Compression::Lz4.pack(vec![7; 2 * BLOCK as usize].into()).unwrap();
    for bad in [good.slice(..good.len() / 2), bytes::Bytes::new(), other, long] {
        scene.store.put(&place.key, bad).await.unwrap();
        let error = scene.restore("backup-1").await.unwrap_err();
        assert!(
            matches!(&error, Error::BlockDamaged { place: damaged, .. } if *damaged == place),
            "{error:?}"
        );
    }
    assert!(matches!(
        scene.restore("backup-1").await.unwrap_err(),
        Error::BlockDamaged { source: Damage::Length { .. }, .. }
    ));
}

#[tokio::test]
async fn a_full_backup_heals_what_can_still_be_read() {
    let mut scene = scene().await;
    let place = scene.place();
    scene.disk.content = scene.disk.snapshots["snapshot-of-backup-1"].clone();
    scene.store.put(&place.key, "rubbish".into()).await.unwrap();
    let mut full = request("backup-3");
    full.parameters.insert("backup-mode".into(), "full".into());
    let source = scene.disk.snapshot(&full.snapshot.name);
    scene.repository.backup(&full, &source, &Job::default()).await.unwrap();
    let info = scene.repository.inspect_backup(&volume(), &name("backup-3")).await.unwrap();
    assert!(info.re_uploaded_data_size > 0 && info.newly_uploaded_data_size == 0 && !info.is_incremental);
    scene.restore("backup-1").await.unwrap();
}

#[tokio::test]
async fn an_unreadable_backup_keeps_all_blocks_until_it_is_deleted() {
    let mut scene = scene().await;
    let key = Layout::new(&volume()).backup_config(&name("backup-2"));
    scene.store.put(&key, "{".into()).await.unwrap();
    let cancel = CancellationToken::new();
    assert!(matches!(scene.restore("backup-2").await, Err(Error::Config { .. })));
    let shown = scene.repository.inspect_volume_with_backups(&volume()).await.unwrap();
    assert!(shown.backups["backup-2"].messages["error"].contains("backup_backup-2.cfg"));

    let done = scene.backup("backup-3").await.unwrap();
    assert!(!done.is_incremental, "the last one is of no use");
    let deleted = scene.repository.delete_backup(&volume(), &name("backup-1"), &cancel).await.unwrap();
    assert_eq!(deleted.blocks_kept, Some(Unsure::Unreadable(name("backup-2"))));
    assert!(scene.store.head(&scene.place().key).await.unwrap().is_some());
    let swept = scene.repository.sweep(&volume(), &cancel).await.unwrap();
    assert_eq!((swept.blocks_deleted, swept.blocks_kept), (0, deleted.blocks_kept));

    scene.repository.delete_backup(&volume(), &name("backup-2"), &cancel).await.unwrap();
    let swept = scene.repository.sweep(&volume(), &cancel).await.unwrap();
    assert_eq!((swept.blocks_deleted, swept.blocks_kept), (1, None));
    let content = scene.disk.content.clone();
    restore_and_compare(&scene.repository, "backup-3", &content, SIZE).await;
}

#[tokio::test]
async fn a_damaged_index_is_made_anew() {
    let scene = scene().await;
    let key = Layout::new(&volume()).references();
    scene.repository.sweep(&volume(), &CancellationToken::new()).await.unwrap();
    let good = scene.store.get(&key).await.unwrap().unwrap();
    let mut bad = good.to_vec();
    bad[good.len() / 2] ^= 1;
    scene.store.put(&key, bad.into()).await.unwrap();
    let deleted = scene
        .repository
        .delete_backup(&volume(), &name("backup-1"), &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!((deleted.blocks_deleted, deleted.blocks_kept), (1, None));
    scene.restore("backup-2").await.unwrap();
}

/// As when somebody else's tool deletes a backup and the name is used again.
#[tokio::test]
async fn an_index_that_knows_another_backup_of_the_same_name_is_made_anew() {
    let mut scene = scene().await;
    let cancel = CancellationToken::new();
    scene.repository.sweep(&volume(), &cancel).await.unwrap();
    let key = Layout::new(&volume()).backup_config(&name("backup-1"));
    scene.store.delete(&key).await.unwrap();
    let source = scene.disk.snapshot("another");
    let mut again = request("backup-1");
    again.snapshot.name = "another".into();
    scene.repository.backup(&again, &source, &Job::default()).await.unwrap();
    let deleted = scene.repository.delete_backup(&volume(), &name("backup-2"), &cancel).await.unwrap();
    assert_eq!((deleted.blocks_deleted, deleted.blocks_kept), (0, None), "both hold the same");
    scene.restore("backup-1").await.unwrap();
}

#[tokio::test]
async fn requests_that_cannot_be_met_are_refused_with_a_reason() {
    let mut scene = scene().await;
    assert!(matches!(scene.backup("backup-1").await, Err(Error::BackupExists { .. })));
    assert!(matches!(scene.restore("backup-9").await, Err(Error::NoBackup { .. })));
    let onto = RestoreRequest { volume: volume(), backup: name("backup-2"), onto: RestoreOnto::Blank };
    let small = scene.repository.restore(&onto, &Volume::blank(5 * BLOCK), &Job::default()).await;
    assert!(
        matches!(small, Err(Error::TooSmall { needed, size }) if needed == 6 * BLOCK && size == 5 * BLOCK)
    );
    let mut other = request("backup-3");
    other.parameters.clear();
    let source = scene.disk.snapshot("other");
    let refused = scene.repository.backup(&other, &source, &Job::default()).await;
    assert!(matches!(refused, Err(Error::BlockSizeDiffers { .. })));
    let job = Job::default();
    job.cancel().cancel();
    assert!(matches!(
        scene.repository.backup(&request("backup-3"), &source, &job).await,
        Err(Error::Cancelled)
    ));
    assert_eq!(scene.repository.list_backups(&volume()).await.unwrap().len(), 2);
    let locks = scene.store.list(&Layout::new(&volume()).locks()).await.unwrap();
    assert!(locks.objects.is_empty(), "whoever is refused gives its lock back");
}
