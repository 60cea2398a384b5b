//! A small machine room for one test: each replica behind a cable of its own and on a disk of its own, so that cables
//! can be pulled and disks filled. Needs root; nothing of it outlives its test.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

/// Says something even though the test passes and its output is kept back.
pub fn tell(words: &str) {
    writeln!(std::io::stderr(), "{words}").ok();
}

pub struct Lab {
    /// The namespace of the engine, with the switch that all cables end in.
    hub: String,
    places: Vec<String>,
    disks: Vec<Disk>,
}

impl Lab {
    /// Whether a lab can be had. Where it cannot, the terminal is told what is not tested for that reason; a CI
    /// machine has no excuse.
    pub fn is_possible(what_is_skipped: &str) -> bool {
        static HINDRANCE: OnceLock<Option<String>> = OnceLock::new();
        let Some(hindrance) = HINDRANCE.get_or_init(hindrance) else { return true };
        assert!(std::env::var_os("CI").is_none(), "CI must run {what_is_skipped}: {hindrance}");
        tell(&format!("SKIPPED: {what_is_skipped}; it needs root and network namespaces ({hindrance})"));
        false
    }

    pub fn build(home: &Path, replicas: usize) -> Self {
        static BUILT: AtomicU32 = AtomicU32::new(0);
        let number = BUILT.fetch_add(1, Ordering::Relaxed);
        let name = format!("granary-{}-{number}", std::process::id());
        let hub = format!("{name}-hub");
        let places: Vec<_> = (0..replicas).map(|replica| format!("{name}-{replica}")).collect();
        // Made first, so that whatever follows is cleaned up when it fails.
        let mut lab = Self { hub, places, disks: Vec::new() };
        lab.lay_cables();
        for replica in 0..replicas {
            lab.disks.push(Disk::mount(home, replica));
        }
        lab
    }

    fn lay_cables(&self) {
        // The first namespace of a machine is not made by two at once.
        static ALONE: Mutex<()> = Mutex::new(());
        let _alone = ALONE.lock();
        ip(&["netns", "add", &self.hub]);
        let in_hub = |arguments: &[&str]| ip(&[&["-n", self.hub.as_str()], arguments].concat());
        in_hub(&["link", "add", "lan", "type", "bridge"]);
        in_hub(&["addr", "add", "10.77.0.254/24", "dev", "lan"]);
        in_hub(&["link", "set", "lan", "up"]);
        for (replica, place) in self.places.iter().enumerate() {
            ip(&["netns", "add", place]);
            let (port, address) = (port(replica), format!("{}/24", address(replica)));
            in_hub(&["link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", place]);
            in_hub(&["link", "set", &port, "master", "lan", "up"]);
            ip(&["-n", place, "addr", "add", &address, "dev", "eth0"]);
            ip(&["-n", place, "link", "set", "eth0", "up"]);
        }
    }

    /// The command as the hub runs it.
    pub fn at_hub(&self, program: &str) -> Command {
        within(&self.hub, program)
    }

    /// The command as the machine of this replica runs it.
    pub fn at(&self, replica: usize, program: &str) -> Command {
        within(&self.places[replica], program)
    }

    pub fn listen(&self, replica: usize) -> String {
        format!("{}:9500", address(replica))
    }

    pub fn directory(&self, replica: usize) -> PathBuf {
        self.disks[replica].at.join("replica")
    }

    /// Neither side is told; nothing arrives any more.
    pub fn pull_cable(&self, replica: usize) {
        ip(&["-n", &self.hub, "link", "set", &port(replica), "down"]);
    }

    pub fn plug_cable(&self, replica: usize) {
        ip(&["-n", &self.hub, "link", "set", &port(replica), "up"]);
    }

    /// To the last byte, what is kept back for root included.
    pub fn fill_disk(&self, replica: usize) {
        self.disks[replica].fill();
    }

    pub fn free_disk(&self, replica: usize) {
        std::fs::remove_file(self.disks[replica].ballast()).unwrap();
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for place in self.places.iter().chain([&self.hub]) {
            Command::new("ip").args(["netns", "del", place]).output().ok();
        }
    }
}

fn hindrance() -> Option<String> {
    remove_what_the_dead_left();
    let probe = format!("granary-{}-probe", std::process::id());
    match Command::new("ip").args(["netns", "add", &probe]).output() {
        Ok(output) if output.status.success() => {
            ip(&["netns", "del", &probe]);
            None
        }
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("ip: {error}; apt-get install iproute2")),
    }
}

fn address(replica: usize) -> String {
    format!("10.77.0.{}", replica + 1)
}

fn port(replica: usize) -> String {
    format!("port{replica}")
}

fn within(place: &str, program: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{place}")).arg(program);
    command
}

fn ip(arguments: &[&str]) {
    run("ip", arguments);
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program} cannot run: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A test that was killed could not clean up.
fn remove_what_the_dead_left() {
    let Ok(names) = std::fs::read_dir("/run/netns") else { return };
    for name in names.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
        let pid = name.strip_prefix("granary-").and_then(|rest| rest.split('-').next());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            Command::new("ip").args(["netns", "del", &name]).output().ok();
        }
    }
}

/// A file system that only one replica uses.
struct Disk {
    at: PathBuf,
}

impl Disk {
    /// The kinds that people have, in turn.
    fn mount(home: &Path, number: usize) -> Self {
        let disk = Self { at: home.join(format!("disk-{number}")) };
        std::fs::create_dir(&disk.at).unwrap();
        let at = disk.at.to_str().unwrap();
        match number % 3 {
            0 => mount_image(at, "mkfs.ext4", &["-q", "-F", "-b", "4096"], 96 << 20),
            1 => run("mount", &["-t", "tmpfs", "-o", "size=96m", "tmpfs", at]),
            // It refuses to be smaller.
            _ => mount_image(at, "mkfs.xfs", &["-q", "-f"], 320 << 20),
        }
        disk
    }

    fn ballast(&self) -> PathBuf {
        self.at.join("ballast")
    }

    fn fill(&self) {
        let file = File::create(self.ballast()).unwrap();
        let (mut end, mut step) = (0, 1 << 30);
        while step >= 4096 {
            match fallocate(&file, FallocateFlags::empty(), end, step) {
                Ok(()) => end += step,
                Err(Errno::NOSPC) => step /= 2,
                Err(error) => panic!("cannot fill {}: {error}", self.at.display()),
            }
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a process that is about to be gone may still be in there.
        Command::new("umount").arg("-l").arg(&self.at).output().ok();
    }
}

fn mount_image(at: &str, mkfs: &str, flags: &[&str], size: u64) {
    let image = format!("{at}.img");
    File::create(&image).unwrap().set_len(size).unwrap();
    run(mkfs, &[flags, &[image.as_str()]].concat());
    run("mount", &["-o", "loop", &image, at]);
}
