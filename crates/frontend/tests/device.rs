//! The volume as a block device and as a file, with real file systems on it. Needs root, as the device does.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use granary_frontend::device::{Device, DeviceOptions};
use granary_frontend::fuse::FuseMount;
use granary_frontend::{FileVolume, Volume};
use support::{MIB, on_one_thread, run, serve_file, write_pattern};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

struct Setup {
    /// Stays when a test fails.
    directory: tempfile::TempDir,
    volume: FileVolume,
    options: DeviceOptions,
}

fn setup(name: &str, size: u64) -> Setup {
    // Never removed by a test that fails: it would walk into a file system that its own thread serves.
    let mut directory = tempfile::tempdir().unwrap();
    directory.disable_cleanup(true);
    let volume = FileVolume::create(&directory.path().join("disk"), size).unwrap();
    let options = DeviceOptions {
        name: name.into(),
        run_directory: directory.path().join("run"),
        link: Some(directory.path().join("link")),
        block_size: 512,
        read_only: false,
        way: None,
    };
    Setup { directory, volume, options }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// mkfs, mount, write, grow while mounted, unmount, check: with the programs of each file system.
async fn file_system(kind: &str, size: u64, package: &str, grow: &[&str], check: &[&str]) {
    let Setup { directory, volume, options } = setup(kind, size);
    let device = Device::attach(volume.clone(), &options).await.unwrap();
    let node = text(device.path()).to_owned();
    let (mount_point, source) = (directory.path().join("mnt"), directory.path().join("source"));
    std::fs::create_dir(&mount_point).unwrap();
    write_pattern(&source, 24 * MIB, 5);
    run(package, &format!("mkfs.{kind}"), ["-q", &node]).await;
    run("mount", "mount", ["-t", kind, "-o", "discard", &node, text(&mount_point)]).await;
    let copy = mount_point.join("copy");
    run("coreutils", "cp", [text(&source), text(&copy)]).await;

    volume.expand(2 * size).unwrap();
    let bytes = (2 * size).to_string();
    for _ in 0..100 {
        if run("util-linux", "blockdev", ["--getsize64", &node]).await.trim() == bytes {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let target = if kind == "xfs" { text(&mount_point) } else { &node };
    let offline = kind == "ext4" && !may_resize_ext4_online();
    if offline {
        run("mount", "umount", [text(&mount_point)]).await;
        run(package, "e2fsck", ["-fp", &node]).await;
    }
    run(package, grow[0], grow[1..].iter().copied().chain([target])).await;
    if offline {
        run("mount", "mount", [&node, text(&mount_point)]).await;
    }
    let df = run("coreutils", "df", ["--output=size", "-B1", text(&mount_point)]).await;
    let usable: u64 = df.lines().last().unwrap().trim().parse().unwrap();
    assert!(usable > size, "the file system did not grow: {df}");

    run("mount", "umount", [text(&mount_point)]).await;
    run(package, check[0], check[1..].iter().copied().chain([&*node])).await;
    run("mount", "mount", ["-t", kind, &node, text(&mount_point)]).await;
    run("diffutils", "cmp", [text(&source), text(&copy)]).await;
    run("mount", "umount", [text(&mount_point)]).await;
    device.detach().await.unwrap();
    assert_nothing_is_left(&options).await;
}

/// What a program wrote without asking for a sync is the volume's before the device goes, whether a file system is
/// between them or not.
#[test]
fn what_was_written_is_there_after_the_device_was_detached_under_its_users() {
    on_one_thread(async {
        let Setup { directory, volume, options } = setup("in-use", 64 * MIB);
        let device = Device::attach(volume.clone(), &options).await.unwrap();
        let node = text(device.path()).to_owned();
        let (mount_point, source) = (directory.path().join("mnt"), directory.path().join("source"));
        std::fs::create_dir(&mount_point).unwrap();
        write_pattern(&source, 4 * MIB, 7);
        run("e2fsprogs", "mkfs.ext4", ["-q", &node]).await;
        run("mount", "mount", [&node, text(&mount_point)]).await;
        let copy = mount_point.join("copy");
        run("coreutils", "cp", [text(&source), text(&copy)]).await;
        device.detach().await.unwrap();
        run("mount", "umount", ["-l", text(&mount_point)]).await;

        let device = Device::attach(volume.clone(), &options).await.unwrap();
        let node = text(device.path()).to_owned();
        run("mount", "mount", [&node, text(&mount_point)]).await;
        run("diffutils", "cmp", [text(&source), text(&copy)]).await;
        run("mount", "umount", [text(&mount_point)]).await;

        // Held open, so that its last close does not write anything back.
        let held = std::fs::File::open(&node).unwrap();
        run(
            "coreutils",
            "dd",
            [&format!("if={}", text(&source)), &format!("of={node}"), "bs=1M", "conv=notrunc", "status=none"],
        )
        .await;
        device.detach().await.unwrap();
        drop(held);
        let expected = std::fs::read(&source).unwrap();
        assert_eq!(volume.read(0, MIB as u32).await.unwrap(), expected[..MIB as usize]);
        assert_nothing_is_left(&options).await;
    });
}

/// ext4 grows while mounted only for those with CAP_SYS_RESOURCE, which root in a container may lack.
fn may_resize_ext4_online() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(line.trim(), 16).unwrap() & 1 << 24 != 0
}

async fn assert_nothing_is_left(options: &DeviceOptions) {
    let run_directory = text(&options.run_directory).to_owned();
    // The last close of a device by udev or the like may come a little later.
    for attempt in 0.. {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let loops = run("mount", "losetup", ["-a"]).await;
        if !mounts.contains(&run_directory) && !loops.contains(&run_directory) {
            break;
        }
        assert!(attempt < 100, "left behind:\n{mounts}\n{loops}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(!options.link.as_ref().unwrap().is_symlink(), "the link was left behind");
    std::fs::remove_dir_all(options.run_directory.parent().unwrap()).unwrap();
}

#[test]
fn ext4_lives_on_the_device_and_grows_with_it() {
    on_one_thread(file_system("ext4", 64 * MIB, "e2fsprogs", &["resize2fs"], &["e2fsck", "-fn"]));
}

#[test]
fn xfs_lives_on_the_device_and_grows_with_it() {
    // xfs refuses to be smaller than this.
    on_one_thread(file_system("xfs", 320 * MIB, "xfsprogs", &["xfs_growfs"], &["xfs_repair", "-n"]));
}

#[test]
fn discards_and_zeroes_of_the_device_reach_the_volume() {
    on_one_thread(async {
        let Setup { volume, options, .. } = setup("discard", 16 * MIB);
        let device = Device::attach(volume.clone(), &options).await.unwrap();
        let node = text(device.path()).to_owned();
        volume.write(0, vec![7; 16 << 20].into(), false).await.unwrap();
        run("util-linux", "blkdiscard", ["-o", "0", "-l", "4194304", &node]).await;
        run("util-linux", "blkdiscard", ["-z", "-o", "4194304", "-l", "4194304", &node]).await;
        assert_eq!(volume.read(0, 8 << 20).await.unwrap(), vec![0; 8 << 20]);
        assert_eq!(volume.read(8 << 20, 4096).await.unwrap(), vec![7; 4096]);
        let runs = volume.allocation(0, 4 << 20).await.unwrap();
        assert!(runs.iter().all(|run| run.hole), "discarding freed nothing: {runs:?}");
        device.detach().await.unwrap();
        assert_nothing_is_left(&options).await;
    });
}

#[test]
fn the_file_knows_its_holes_and_its_size() {
    on_one_thread(async {
        let Setup { directory, volume, .. } = setup("file", 16 * MIB);
        volume.write(4 << 20, vec![7; 1 << 20].into(), false).await.unwrap();
        let mount = FuseMount::mount(volume.clone(), &directory.path().join("mnt"), "file").await.unwrap();
        let file = mount.file();
        let map = run("qemu-utils", "qemu-img", ["map", "--output=json", "-f", "raw", text(&file)]).await;
        let data = r#""start": 4194304, "length": 1048576, "depth": 0, "present": true, "zero": false, "data": true"#;
        assert!(map.contains(data), "{map}");
        volume.expand(32 * MIB).unwrap();
        let size = run("coreutils", "stat", ["-c", "%s", text(&file)]).await;
        assert_eq!(size.trim(), (32 * MIB).to_string());
        let list = run("coreutils", "ls", [text(file.parent().unwrap())]).await;
        assert_eq!(list.trim(), "volume");
        mount.unmount().await.unwrap();
    });
}

/// The example program with a device.
async fn start(directory: &Path, extra: &[&str]) -> Child {
    let mut child = Command::new(serve_file())
        .current_dir(directory)
        .args(["disk", "--name", "victim", "--frontend"])
        .arg(format!("device://{}", directory.join("link").display()))
        .arg("--run-directory")
        .arg(directory.join("run"))
        .args(extra)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).await.unwrap();
    assert!(line.starts_with("ready"), "{line:?}");
    child
}

fn device_of(directory: &Path) -> PathBuf {
    std::fs::read_link(directory.join("link")).unwrap()
}

async fn terminate(mut child: Child) {
    run("procps", "kill", [child.id().unwrap().to_string()]).await;
    assert!(child.wait().await.unwrap().success());
}

#[test]
fn after_a_kill_the_next_process_cleans_up_and_serves() {
    on_one_thread(async {
        let Setup { directory, options, .. } = setup("victim", 64 * MIB);
        let directory = directory.path();
        let mut child = start(directory, &[]).await;
        let node = device_of(directory);
        // Something the kernel has not written yet, which the dying process must not be waited for.
        run("coreutils", "dd", ["if=/dev/urandom", &format!("of={}", node.display()), "bs=1M", "count=8"])
            .await;
        child.kill().await.unwrap();

        let child = start(directory, &[]).await;
        let node = device_of(directory);
        run("e2fsprogs", "mkfs.ext4", ["-q", "-F", text(&node)]).await;
        run("e2fsprogs", "e2fsck", ["-fn", text(&node)]).await;
        terminate(child).await;
        assert_nothing_is_left(&options).await;
    });
}

#[test]
fn a_mounted_file_system_does_not_notice_that_its_process_is_replaced() {
    on_one_thread(async {
        let Setup { directory, options, .. } = setup("victim", 64 * MIB);
        let directory = directory.path();
        let mut old = start(directory, &["--handover", "s0"]).await;
        let (node, mount_point) = (device_of(directory), directory.join("mnt"));
        std::fs::create_dir(&mount_point).unwrap();
        run("e2fsprogs", "mkfs.ext4", ["-q", text(&node)]).await;
        run("mount", "mount", [text(&node), text(&mount_point)]).await;
        let load = fio_on_a_file(&mount_point.join("load"), 6);
        let load = tokio::task::spawn_local(run("fio", "fio", load));
        for round in 1..=5 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let (theirs, ours) = (format!("s{}", round - 1), format!("s{round}"));
            let new = start(directory, &["--take-over", &theirs, "--handover", &ours]).await;
            assert!(old.wait().await.unwrap().success(), "the old process did not end well");
            old = new;
        }
        assert!(!load.is_finished(), "the load ended before the last handover");
        load.await.unwrap();
        run("mount", "umount", [text(&mount_point)]).await;
        run("e2fsprogs", "e2fsck", ["-fn", text(&node)]).await;
        terminate(old).await;
        assert_nothing_is_left(&options).await;
    });
}

fn fio_on_a_file(path: &Path, seconds: u32) -> Vec<String> {
    let fixed = [
        "--name=load",
        "--ioengine=libaio",
        "--direct=1",
        "--rw=randrw",
        "--bs=4k",
        "--iodepth=16",
        "--size=24m",
        "--time_based",
        "--verify=crc32c",
        "--verify_state_save=0",
        "--verify_fatal=1",
        "--verify_backlog=64",
        "--fsync=50",
    ];
    let variable = [format!("--runtime={seconds}"), format!("--filename={}", path.display())];
    fixed.map(str::to_owned).into_iter().chain(variable).collect()
}
