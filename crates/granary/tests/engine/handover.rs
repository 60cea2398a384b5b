//! A running engine is replaced, and its users only wait a moment.

use std::time::Duration;

use granary_enginectl::v1::HandoverRequest;

use crate::cluster::{Cluster, MIB, Process, exists, on_one_thread};
use crate::programs::run;
use crate::stamps::Stamps;

#[test]
fn an_engine_is_replaced_under_load_without_an_error() {
    on_one_thread(async {
        let cluster = Cluster::new(64 * MIB);
        let mut engine = cluster.engine("e", &[]);
        let volume = cluster.client("e").await;
        let stamps = Stamps::new(512, 7);
        let load = stamps.load(&volume);
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let command = cluster.engine_command("e", &["--takeover", &cluster.url("e")]);
            let before = stamps.writes();
            // The load lives on this thread, and must go on while the next engine starts.
            let next = tokio::task::spawn_blocking(|| Process::start(command)).await.unwrap();
            assert_eq!(engine.ended().await.code(), Some(0));
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert!(stamps.writes() > before, "writes go on");
            engine = next;
        }
        load.finish().await;
        stamps.check_acknowledged(&volume).await;
        cluster.assert_equal("e");
        assert_eq!(cluster.ctl("e", &["metrics"])["errors"], 0);
        let late = cluster.client("e").await;
        stamps.check_acknowledged(&late).await;
        engine.stop().await;
        assert!(!exists(&cluster.path("e.nbd")), "the last one cleans up");
    });
}

#[test]
fn a_mounted_file_system_outlives_its_engine() {
    on_one_thread(async {
        let cluster = Cluster::new(128 * MIB);
        let (link, mounted) = (cluster.path("disk"), cluster.path("mnt"));
        let device = format!("device://{}", link.display());
        let run_dir = cluster.path("run");
        let flags = ["--frontend", device.as_str(), "--run-dir", run_dir.to_str().unwrap()];
        let mut engine = cluster.engine("e", &flags);
        run("mkfs.ext4", ["-q".as_ref(), link.as_os_str()]).await;
        std::fs::create_dir(&mounted).unwrap();
        run("mount", [link.as_os_str(), mounted.as_os_str()]).await;
        for round in 0..3u8 {
            let file = mounted.join(format!("file-{round}"));
            let writing = tokio::task::spawn_blocking(move || {
                std::fs::write(&file, vec![round + 1; 8 << 20]).unwrap();
                std::fs::File::open(&file).unwrap().sync_all().unwrap();
            });
            let old = cluster.url("e");
            let takeover = [flags.as_slice(), &["--takeover", &old]].concat();
            let command = cluster.engine_command("e", &takeover);
            let next = tokio::task::spawn_blocking(|| Process::start(command)).await.unwrap();
            assert_eq!(engine.ended().await.code(), Some(0));
            engine = next;
            writing.await.unwrap();
        }
        run("umount", [mounted.as_os_str()]).await;
        run("fsck.ext4", ["-fn".as_ref(), link.as_os_str()]).await;
        run("mount", ["-o".as_ref(), "ro".as_ref(), link.as_os_str(), mounted.as_os_str()]).await;
        for round in 0..3u8 {
            let content = std::fs::read(mounted.join(format!("file-{round}"))).unwrap();
            assert!(content == vec![round + 1; 8 << 20], "file {round} is not what was written");
        }
        run("umount", [mounted.as_os_str()]).await;
        assert!(engine.line.contains("/dev/loop"), "the last engine knows the device: {}", engine.line);
        cluster.assert_equal("e");
        engine.stop().await;
        assert!(!exists(&link), "the link to the device is left behind");
    });
}

/// A next engine that is not there when it is to take over.
#[test]
fn an_engine_whose_successor_fails_goes_on() {
    on_one_thread(async {
        let cluster = Cluster::new(64 * MIB);
        let engine = cluster.engine("e", &[]);
        let volume = cluster.client("e").await;
        let stamps = Stamps::new(512, 8);
        let load = stamps.load(&volume);
        let listener = tokio::net::UnixListener::bind(cluster.path("successor")).unwrap();
        let mut control = granary_enginectl::connect(&cluster.url("e").parse().unwrap()).await.unwrap();
        let request = HandoverRequest {
            volume: "vol".into(),
            frontends: vec![cluster.nbd("e").parse::<granary_frontend::FrontendSpec>().unwrap().to_string()],
            socket: "successor".into(),
            control: cluster.url("e"),
            size: 0,
        };
        control.handover(request).await.unwrap();
        drop(listener.accept().await.unwrap());
        let before = stamps.writes();
        while stamps.writes() < before + 100 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        load.finish().await;
        stamps.check_acknowledged(&volume).await;
        cluster.until_states("e", &["inSync"; 3]).await;
        cluster.assert_equal("e");
        engine.stop().await;
    });
}
