//! The same stories in a directory and on a real S3 server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::TryStreamExt;
use granary_backup::{
    Compression, Credentials, DirectoryStore, Job, OpenError, Repository, RestoreOnto, RestoreRequest,
    S3Store, Store, TargetUrl,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_util::sync::CancellationToken;

use crate::disk::{Disk, Volume};
use crate::s3_server::S3Server;
use crate::setup::{BLOCK, QUICK, name, request, restore_and_compare, volume};

const SIZE: u64 = 32 * BLOCK;

async fn open(target: &TargetUrl, credentials: &Credentials) -> Repository {
    Repository::open(target, credentials, None).await.unwrap().with_lock_timings(QUICK)
}

fn directory_target(path: &Path) -> TargetUrl {
    format!("file://{}", path.display()).parse().unwrap()
}

async fn backup(repository: &Repository, disk: &mut Disk, backup: &str, compression: Compression) -> bool {
    let mut request = request(backup);
    request.compression = compression;
    let source = disk.snapshot(&request.snapshot.name);
    let done = repository.backup(&request, &source, &Job::default()).await.unwrap();
    assert_eq!(done.url.target, *repository.target());
    done.is_incremental
}

/// A volume's life: backups, restores, deletions, and nothing is left.
async fn a_life(repository: &Repository, compression: Compression) {
    let mut disk = Disk::new(SIZE);
    for chunk in 0..64 {
        disk.write(chunk, chunk as u8);
    }
    assert!(!backup(repository, &mut disk, "backup-1", compression).await);
    let first = disk.content.clone();
    disk.write(3, 99);
    disk.write(100, 100);
    (8..16).for_each(|chunk| disk.discard(chunk));
    assert!(backup(repository, &mut disk, "backup-2", compression).await);
    let second = disk.content.clone();

    restore_and_compare(repository, "backup-1", &first, SIZE).await;
    restore_and_compare(repository, "backup-2", &second, SIZE).await;
    for (from, to, before, after) in
        [("backup-1", "backup-2", &first, &second), ("backup-2", "backup-1", &second, &first)]
    {
        let target = Volume::holding(before, SIZE);
        let request =
            RestoreRequest { volume: volume(), backup: name(to), onto: RestoreOnto::Backup(name(from)) };
        repository.restore(&request, &target, &Job::default()).await.unwrap();
        target.assert_holds(after);
    }

    assert_eq!(repository.list_volumes().await.unwrap(), [volume()]);
    let info = repository.inspect_volume_with_backups(&volume()).await.unwrap();
    assert_eq!((info.backups.len(), info.last_backup_name.as_str()), (2, "backup-2"));
    assert_eq!(info.backups["backup-1"].compression_method, compression.as_str());
    let written = repository.modified(&volume(), Some(&name("backup-1"))).await.unwrap();
    assert!(written <= repository.modified(&volume(), None).await.unwrap());

    let cancel = CancellationToken::new();
    let deleted = repository.delete_backup(&volume(), &name("backup-2"), &cancel).await.unwrap();
    assert_eq!((deleted.blocks_deleted, deleted.blocks_kept), (2, None));
    assert_eq!(repository.inspect_volume(&volume()).await.unwrap().last_backup_name, "backup-1");
    restore_and_compare(repository, "backup-1", &first, SIZE).await;
    let swept = repository.sweep(&volume(), &cancel).await.unwrap();
    assert_eq!((swept.blocks_deleted, swept.missing), (0, vec![]));
    repository.delete_volume(&volume(), &cancel).await.unwrap();
    assert_eq!(repository.list_volumes().await.unwrap(), []);
}

/// What the library builds upon.
async fn the_contract(store: Arc<dyn Store>) {
    assert_eq!(store.get("a/none").await.unwrap(), None);
    assert_eq!(store.head("a/none").await.unwrap(), None);
    assert_eq!(store.list("a").await.unwrap(), Default::default());
    store.delete("a/none").await.unwrap();
    store.put("a/one", "1".into()).await.unwrap();
    assert!(!store.put_if_absent("a/one", "2".into()).await.unwrap());
    assert!(store.put_if_absent("a/b/two", "22".into()).await.unwrap());
    assert_eq!(store.get("a/one").await.unwrap().unwrap(), "1");
    let before = store.head("a/one").await.unwrap().unwrap();
    // A server may tell times in whole seconds and tags by content.
    store.put("a/one", "11".into()).await.unwrap();
    let after = store.head("a/one").await.unwrap().unwrap();
    assert_ne!(before.version, after.version);
    assert_eq!(after.size, 2);
    let age = jiff::Timestamp::now().duration_since(after.modified).as_secs();
    assert!((-2..60).contains(&age), "{age}");
    let listing = store.list("a").await.unwrap();
    assert_eq!(listing.directories, ["b"]);
    assert_eq!(listing.objects, [after], "a listing and a look tell the same");
    assert_eq!(store.list("a/").await.ok().map_or(0, |listing| listing.objects.len()), listing.objects.len());
    let mut walked: Vec<_> = store.walk("a").map_ok(|entry| entry.key).try_collect().await.unwrap();
    walked.sort();
    assert_eq!(walked, ["a/b/two", "a/one"]);
    store.delete_many(walked).await.unwrap();
    assert_eq!(store.list("a").await.unwrap(), Default::default());
    let large = bytes::Bytes::from(vec![7; 24 << 20]);
    store.put("a/large", large.clone()).await.unwrap();
    assert!(store.get("a/large").await.unwrap().unwrap() == large);
    // More than one page of a listing.
    for number in 0..1050 {
        store.put(&format!("many/{number}"), "x".into()).await.unwrap();
    }
    assert_eq!(store.list("many").await.unwrap().objects.len(), 1050);
    assert_eq!(store.walk("many").try_collect::<Vec<_>>().await.unwrap().len(), 1050);
}

/// Eight at once make the same object; one of them has made it.
async fn one_wins(store: Arc<dyn Store>) {
    for round in 0..10 {
        let attempts = (0..8).map(|attempt| {
            let store = store.clone();
            tokio::spawn(async move {
                store.put_if_absent(&format!("race/{round}"), attempt.to_string().into()).await
            })
        });
        let mut winners = 0;
        for attempt in attempts.collect::<Vec<_>>() {
            winners += u32::from(attempt.await.unwrap().unwrap());
        }
        assert_eq!(winners, 1);
    }
}

#[tokio::test]
async fn a_life_in_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let repository = open(&directory_target(directory.path()), &Credentials::none()).await;
    for compression in [Compression::Lz4, Compression::Gzip, Compression::None] {
        a_life(&repository, compression).await;
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            0,
            "not even an empty directory is left"
        );
    }
}

#[tokio::test]
async fn a_life_on_an_nfs_mount() {
    let directory = tempfile::tempdir().unwrap();
    let target: TargetUrl = "nfs://server/export".parse().unwrap();
    let refused = Repository::open(&target, &Credentials::none(), None).await.err();
    assert!(matches!(refused, Some(OpenError::NotMounted(_))));
    let mounted = Repository::open(&target, &Credentials::none(), Some(directory.path())).await.unwrap();
    a_life(&mounted.with_lock_timings(QUICK), Compression::Lz4).await;
}

#[tokio::test]
async fn a_directory_keeps_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(DirectoryStore::open(directory.path()).unwrap());
    the_contract(store.clone()).await;
    one_wins(store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_life_on_an_s3_server() {
    let server = S3Server::start("http", &[]);
    let repository = open(&server.target(), &server.credentials()).await;
    // Its clock tells whole seconds, and so do the locks.
    for compression in [Compression::Lz4, Compression::Gzip, Compression::None] {
        a_life(&repository, compression).await;
    }
    assert!(server.bucket().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_s3_server_keeps_the_contract() {
    let server = S3Server::start("http", &[]);
    let store = Arc::new(S3Store::open(&server.target(), &server.credentials()).unwrap());
    the_contract(store.clone()).await;
    one_wins(store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_keys_are_noticed_when_the_target_is_opened_and_concern_one_request_only() {
    let server = S3Server::start("http", &[]);
    let wrong = server.credentials_with(&["AWS_SECRET_ACCESS_KEY=wrong"]);
    let good = server.credentials();
    let target = server.target();
    for _ in 0..3 {
        let (refused, opened) =
            tokio::join!(Repository::open(&target, &wrong, None), Repository::open(&target, &good, None));
        assert!(matches!(refused.err(), Some(OpenError::Unreachable { .. })));
        assert!(opened.is_ok());
    }
    // Another proxy than none would be noticed: nobody listens there.
    let proxied = server.credentials_with(&["HTTP_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1"]);
    assert!(Repository::open(&target, &proxied, None).await.is_ok());
    let nowhere: TargetUrl = "s3://no-such-bucket@us-east-1/x".parse().unwrap();
    assert!(matches!(
        Repository::open(&nowhere, &good, None).await.err(),
        Some(OpenError::Unreachable { .. })
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_a_certificate_of_its_own_is_trusted_when_the_request_says_so() {
    let files = tempfile::tempdir().unwrap();
    let (certificate, key) = (files.path().join("certificate"), files.path().join("key"));
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_certificate = authority.self_signed(&authority_key).unwrap();
    let server_key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap();
    let server = server.signed_by(&server_key, &Issuer::new(authority, authority_key)).unwrap();
    std::fs::write(&certificate, server.pem()).unwrap();
    std::fs::write(&key, server_key.serialize_pem()).unwrap();
    let paths = [&certificate, &key].map(|path| path.to_str().unwrap().to_owned());

    let server = S3Server::start("https", &["--cert", &paths[0], "--key", &paths[1]]);
    let refused = S3Store::open(&server.target(), &server.credentials()).unwrap();
    let refused = tokio::time::timeout(Duration::from_secs(3), refused.list("x")).await;
    assert!(!matches!(refused, Ok(Ok(_))), "nobody vouches for it");
    let trusting = server.credentials_with(&[&format!("AWS_CERT={}", authority_certificate.pem())]);
    a_life(&open(&server.target(), &trusting).await, Compression::Lz4).await;
}
