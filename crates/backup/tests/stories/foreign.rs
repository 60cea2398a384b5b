//! A volume as a Longhorn cluster leaves it: its documents are written out here by hand, its blocks are gzip.

use std::io::{Seek, Write};
use std::process::Command;
use std::sync::Arc;

use granary_backup::{Checksum, Compression, Job, Layout, RestoreOnto, RestoreRequest, Store, Unsure};
use tokio_util::sync::CancellationToken;

use crate::disk::{CHUNK, Disk, Volume};
use crate::memory::MemoryStore;
use crate::setup::{name, repository, restore_and_compare, volume};

const BLOCK: usize = 2 << 20;
const SIZE: u64 = 4 * BLOCK as u64;

async fn put(store: &MemoryStore, key: &str, text: String) {
    store.put(key, text.into()).await.unwrap();
}

/// One backup with data in block 1 and zeroes, as a listed block, in block 2.
async fn cluster() -> (MemoryStore, Disk) {
    let store = MemoryStore::new();
    let layout = Layout::new(&volume());
    let mut disk = Disk::new(SIZE);
    for chunk in 0..BLOCK as u64 / CHUNK {
        disk.write(BLOCK as u64 / CHUNK + chunk, (chunk % 251) as u8 + 1);
    }
    let data: Vec<u8> = disk.content.values().flatten().copied().collect();
    let zeroes = vec![0; BLOCK];
    for block in [&data, &zeroes] {
        let packed = Compression::Gzip.pack(block.clone().into()).unwrap();
        store.put(&layout.block(Checksum::of(block)), packed).await.unwrap();
    }
    put(
        &store,
        &layout.volume_config(),
        concat!(
            r#"{"Name":"pvc-1","Size":"8388608","Labels":null,"CreatedTime":"2023-05-01T00:00:00Z","#,
            r#""LastBackupName":"backup-0a1b","LastBackupAt":"2023-05-02T00:00:00Z","BlockCount":"2","#,
            r#""BackingImageName":"\"\"","BackingImageChecksum":"\"\"","CompressionMethod":"\"gzip\"","#,
            r#""StorageClassName":"\"longhorn\"","DataEngine":"\"v1\""}"#
        )
        .to_owned(),
    )
    .await;
    let backup = format!(
        concat!(
            r#"{{"Name":"backup-0a1b","VolumeName":"pvc-1","SnapshotName":"snap-1","SnapshotCreatedAt":"2023-05-02T00:00:00Z","#,
            r#""CreatedTime":"2023-05-02T00:01:00Z","Size":"4194304","Labels":{{"KubernetesStatus":"x"}},"Parameters":null,"#,
            r#""IsIncremental":false,"CompressionMethod":"gzip","NewlyUploadedDataSize":"4242","ReUploadedDataSize":"0","#,
            r#""ProcessingBlocks":null,"Blocks":[{{"Offset":2097152,"BlockChecksum":"{}"}},{{"Offset":4194304,"BlockChecksum":"{}"}}],"#,
            r#""SingleFile":{{"FilePath":""}}}}"#
        ),
        Checksum::of(&data),
        Checksum::of(&zeroes)
    );
    put(&store, &layout.backup_config(&name("backup-0a1b")), backup).await;
    (store, disk)
}

fn request(backup: &str, snapshot: &str) -> granary_backup::BackupRequest {
    let snapshot =
        granary_backup::Snapshot { name: snapshot.into(), created_at: "2026-01-01T00:00:00Z".into() };
    granary_backup::BackupRequest::new(volume(), name(backup), snapshot)
}

#[tokio::test(start_paused = true)]
async fn its_backups_restore() {
    let (store, disk) = cluster().await;
    let repository = repository(Arc::new(store));
    restore_and_compare(&repository, "backup-0a1b", &disk.content, SIZE).await;
    let target = Volume::blank(SIZE);
    let onto = RestoreRequest { volume: volume(), backup: name("backup-0a1b"), onto: RestoreOnto::Blank };
    let done = repository.restore(&onto, &target, &Job::default()).await.unwrap();
    assert_eq!(done.blocks_fetched, 1, "a block of zeroes is known without being fetched");
    target.assert_holds(&disk.content);
}

#[tokio::test(start_paused = true)]
async fn its_volumes_and_backups_are_shown() {
    let (store, _) = cluster().await;
    let repository = repository(Arc::new(store));
    assert_eq!(repository.list_volumes().await.unwrap(), [volume()]);
    let info = repository.inspect_volume_with_backups(&volume()).await.unwrap();
    assert_eq!((info.size, info.data_stored, info.storage_class_name.as_str()), (SIZE, SIZE / 2, "longhorn"));
    assert_eq!(
        (info.last_backup_name.as_str(), info.last_backup_at.as_str()),
        ("backup-0a1b", "2023-05-02T00:00:00Z")
    );
    let backup = &info.backups["backup-0a1b"];
    assert_eq!(backup.url, "file:///backups?backup=backup-0a1b&volume=pvc-1");
    assert_eq!((backup.size, backup.volume_size, backup.newly_uploaded_data_size), (SIZE / 2, SIZE, 4242));
    assert_eq!((backup.snapshot_name.as_str(), backup.labels["KubernetesStatus"].as_str()), ("snap-1", "x"));
}

#[tokio::test(start_paused = true)]
async fn our_backups_build_on_its_and_keep_its_ways() {
    let (store, mut disk) = cluster().await;
    let repository = repository(Arc::new(store.clone()));
    disk.snapshot("snap-1");
    disk.write(0, 9);
    let source = disk.snapshot("snap-2");
    let done = repository.backup(&request("backup-2", "snap-2"), &source, &Job::default()).await.unwrap();
    assert!(done.is_incremental);
    assert_eq!((done.blocks, done.blocks_read, done.blocks_uploaded), (3, 1, 1));
    restore_and_compare(&repository, "backup-2", &disk.content, SIZE).await;
    let text = store.get(&Layout::new(&volume()).volume_config()).await.unwrap().unwrap();
    let text = std::str::from_utf8(&text).unwrap();
    assert!(text.contains(r#""CompressionMethod":"\"gzip\"""#), "the first backup has decided: {text}");
    assert!(
        text.contains(
            r#""LastBackupName":"backup-2","LastBackupAt":"2026-01-01T00:00:00Z","BlockCount":"3""#
        ),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn while_it_makes_a_backup_no_block_is_deleted() {
    let (store, disk) = cluster().await;
    let repository = repository(Arc::new(store.clone()));
    let layout = Layout::new(&volume());
    let unfinished = r#"{"Name":"backup-new","VolumeName":"pvc-1","CreatedTime":"","Size":"0","CompressionMethod":"gzip"}"#;
    put(&store, &layout.backup_config(&name("backup-new")), unfinished.to_owned()).await;
    let cancel = CancellationToken::new();
    let swept = repository.sweep(&volume(), &cancel).await.unwrap();
    assert_eq!(swept.blocks_kept, Some(Unsure::InProgress(name("backup-new"))));
    assert!(repository.inspect_backup(&volume(), &name("backup-new")).await.is_err());
    restore_and_compare(&repository, "backup-0a1b", &disk.content, SIZE).await;

    tokio::time::sleep(std::time::Duration::from_hours(25)).await;
    let deleted = repository.delete_backup(&volume(), &name("backup-0a1b"), &cancel).await.unwrap();
    assert_eq!((deleted.blocks_deleted, deleted.blocks_kept), (2, None), "its writer is gone");
}

/// Tools that know nothing of us read what we have packed.
#[test]
fn other_programs_unpack_our_blocks() {
    let data: Vec<u8> = (0..BLOCK as u32 / 4).flat_map(|number| (number / 3).to_le_bytes()).collect();
    for (compression, program) in [(Compression::Lz4, "lz4"), (Compression::Gzip, "gzip")] {
        let mut packed = tempfile::tempfile().unwrap();
        packed.write_all(&compression.pack(data.clone().into()).unwrap()).unwrap();
        packed.rewind().unwrap();
        let output = Command::new(program).arg("-dc").stdin(packed).output();
        let output =
            output.unwrap_or_else(|error| panic!("{program}: {error}; install the package {program}"));
        assert!(output.status.success() && output.stdout == data, "{program}");
    }
}
