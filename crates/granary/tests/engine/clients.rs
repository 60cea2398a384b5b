//! The clients people use, on a volume of three replicas of which one after the other is killed under them. None of
//! them notices, and what they read is what they wrote.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use crate::cluster::{Cluster, MIB, Process, on_one_thread};
use crate::programs::{pattern, run};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Replicas are killed and come back, in turn, for as long as the client works.
async fn while_replicas_fail(cluster: &mut Cluster, client: impl Future<Output = ()>) {
    let mut client = pin!(client);
    let mut kills = 0;
    while tokio::time::timeout(Duration::from_millis(150), &mut client).await.is_err() {
        let victim = kills % 3;
        kills += 1;
        cluster.kill_replica(victim);
        let ended = tokio::time::timeout(Duration::from_millis(300), &mut client).await.is_ok();
        cluster.start_replica(victim);
        if ended {
            break;
        }
        tokio::select! {
            () = &mut client => break,
            () = cluster.until_states("e", &["inSync"; 3]) => {}
        }
    }
    assert!(kills > 0, "the client ended before anything happened to it");
    cluster.until_states("e", &["inSync"; 3]).await;
    cluster.assert_equal("e");
    let metrics = cluster.ctl("e", &["metrics"]);
    assert_eq!(metrics["errors"], 0, "{metrics}");
    assert!(metrics["replicaFailures"].as_u64().unwrap() >= kills as u64, "{metrics}");
}

/// An engine that is slow enough for something to happen.
fn slow_engine(cluster: &Cluster, flags: &[&str]) -> Process {
    cluster.engine("e", &[&["--bandwidth", "32MiB"], flags].concat())
}

/// The way libnbd, QEMU and fio write it.
fn uri(cluster: &Cluster) -> String {
    format!("nbd+unix:///?socket={}", cluster.path("e.nbd").display())
}

#[test]
fn nbdcopy_brings_the_same_bytes_there_and_back() {
    on_one_thread(async {
        let mut cluster = Cluster::new(64 * MIB);
        let engine = slow_engine(&cluster, &[]);
        let (image, back, uri) = (cluster.path("image"), cluster.path("back"), uri(&cluster));
        std::fs::write(&image, pattern(64 << 20, 7)).unwrap();
        while_replicas_fail(&mut cluster, async {
            run("nbdcopy", ["--connections=4", "--flush", text(&image), &uri]).await;
            run("nbdcopy", ["--connections=4", &uri, text(&back)]).await;
        })
        .await;
        run("cmp", [&image, &back]).await;
        engine.stop().await;
    });
}

#[test]
fn qemu_img_converts_compares_maps_and_benches() {
    on_one_thread(async {
        let mut cluster = Cluster::new(64 * MIB);
        let engine = slow_engine(&cluster, &[]);
        let (image, qcow, uri) = (cluster.path("image"), cluster.path("image.qcow2"), uri(&cluster));
        std::fs::write(&image, pattern(16 << 20, 9)).unwrap();
        std::fs::File::options().write(true).open(&image).unwrap().set_len(64 * MIB).unwrap();
        let (image, qcow) = (text(&image), text(&qcow));
        while_replicas_fail(&mut cluster, async {
            run("qemu-img", ["convert", "-n", "-f", "raw", "-O", "raw", image, &uri]).await;
            run("qemu-img", ["compare", "-f", "raw", "-F", "raw", image, &uri]).await;
            let map = run("qemu-img", ["map", "--output=json", "-f", "raw", &uri]).await;
            let runs: serde_json::Value = serde_json::from_str(&map).unwrap();
            let hole = runs.as_array().unwrap().iter().find(|run| run["zero"] == true).unwrap();
            assert_eq!((&hole["start"], &hole["length"]), (&(16 * MIB).into(), &(48 * MIB).into()), "{map}");
            run("qemu-img", ["convert", "-f", "raw", "-O", "qcow2", &uri, qcow]).await;
            run("qemu-img", ["compare", qcow, image]).await;
            run("qemu-img", ["bench", "-c", "2000", "-d", "32", "-s", "4096", "-f", "raw", &uri]).await;
            run("qemu-img", ["bench", "-w", "-c", "2000", "-d", "32", "-s", "4096", "-f", "raw", &uri]).await;
        })
        .await;
        engine.stop().await;
    });
}

#[test]
fn qemu_io_reads_what_it_wrote_zeroed_and_discarded() {
    on_one_thread(async {
        let mut cluster = Cluster::new(64 * MIB);
        let engine = slow_engine(&cluster, &[]);
        let uri = uri(&cluster);
        let steps = [
            "write -P 7 0 16M",
            "write -f -P 8 16M 513",
            "write -z 1M 1M",
            "write -z -u 2M 1M",
            "discard 4M 1M",
            "flush",
            "read -P 7 0 1M",
            "read -P 0 1M 2M",
            "read -P 7 3M 1M",
            "read -P 0 4M 1M",
            "read -P 7 5M 11M",
            "read -P 8 16M 513",
        ];
        let commands = steps.iter().flat_map(|step| ["-c", *step]);
        let arguments: Vec<_> =
            ["-t", "none", "-f", "raw"].into_iter().chain(commands).chain([&*uri]).collect();
        while_replicas_fail(&mut cluster, async {
            for _ in 0..3 {
                let output = run("qemu-io", &arguments).await;
                assert!(!output.contains("fail") && !output.contains("rror"), "{output}");
            }
        })
        .await;
        engine.stop().await;
    });
}

#[test]
fn fio_verifies_what_it_wrote() {
    on_one_thread(async {
        let mut cluster = Cluster::new(64 * MIB);
        let engine = cluster.engine("e", &[]);
        let uri = uri(&cluster);
        let fio = |block: &str, offset: &str| {
            let changing = [format!("--bs={block}"), format!("--offset={offset}"), format!("--uri={uri}")];
            let fixed = [
                "--name=load",
                "--ioengine=nbd",
                "--rw=randrw",
                "--iodepth=16",
                "--size=24m",
                "--time_based",
                "--runtime=6",
                "--verify=crc32c",
                "--verify_state_save=0",
                "--verify_fatal=1",
                "--verify_backlog=64",
                "--fsync=50",
                "--randseed=4711",
            ];
            run("fio", fixed.map(str::to_owned).into_iter().chain(changing))
        };
        while_replicas_fail(&mut cluster, async {
            tokio::join!(fio("4k", "0"), fio("64k", "32m"));
        })
        .await;
        engine.stop().await;
    });
}

/// mkfs, mount, write, unmount, check and read again, with the programs of each file system.
async fn file_system(kind: &str, size: u64, check: &[&str]) {
    let mut cluster = Cluster::new(size);
    let (disk, mounted, run_dir) = (cluster.path("disk"), cluster.path("mnt"), cluster.path("run"));
    let device = format!("device://{}", disk.display());
    let engine = slow_engine(&cluster, &["--frontend", &device, "--run-dir", text(&run_dir)]);
    std::fs::create_dir(&mounted).unwrap();
    let source = cluster.path("source");
    std::fs::write(&source, pattern(24 << 20, 5)).unwrap();
    let (disk, mounted, copy) = (text(&disk), text(&mounted), mounted.join("copy"));
    while_replicas_fail(&mut cluster, async {
        run(&format!("mkfs.{kind}"), ["-q", disk]).await;
        run("mount", ["-t", kind, "-o", "discard", disk, mounted]).await;
        run("cp", [&source, &copy]).await;
        run("sync", ["-f", text(&copy)]).await;
        run("umount", [mounted]).await;
        run(check[0], check[1..].iter().chain([&disk])).await;
        run("mount", ["-t", kind, disk, mounted]).await;
        run("cmp", [&source, &copy]).await;
        run("umount", [mounted]).await;
    })
    .await;
    engine.stop().await;
}

#[test]
fn ext4_is_made_filled_and_found_sound() {
    on_one_thread(file_system("ext4", 64 * MIB, &["e2fsck", "-fn"]));
}

#[test]
fn xfs_is_made_filled_and_found_sound() {
    // xfs refuses to be smaller than this.
    on_one_thread(file_system("xfs", 320 * MIB, &["xfs_repair", "-n"]));
}
