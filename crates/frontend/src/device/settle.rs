//! Brings to the volume what the device's users wrote and the kernel still holds, before the device goes away.
//! Never runs on the thread that serves the device, which has to answer meanwhile.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A volume that does not answer must not keep the process from ending.
const LIMIT: Duration = Duration::from_secs(10);

pub(super) async fn settle(device: &Path) {
    let path = device.to_owned();
    let settling = tokio::task::spawn_blocking(move || flush(&path));
    let name = device.display();
    match tokio::time::timeout(LIMIT, settling).await {
        Ok(Ok(Ok(mounts))) if mounts.is_empty() => {}
        Ok(Ok(Ok(mounts))) => tracing::warn!(
            device = %name,
            ?mounts,
            "the device is still mounted: what was written is flushed, what is written from now on fails; unmount first"
        ),
        Ok(Ok(Err(error))) => {
            tracing::error!(device = %name, %error, "what the device's users wrote last may be lost");
        }
        Ok(Err(error)) => {
            tracing::error!(device = %name, %error, "the device was not flushed; this is a defect");
        }
        Err(_) => {
            tracing::error!(device = %name, "the device did not flush within {LIMIT:?}: what was written last may be lost");
        }
    }
}

/// File systems first, since they write to the device. Answers where the device is mounted.
fn flush(device: &Path) -> io::Result<Vec<PathBuf>> {
    let opened = std::fs::File::open(device)?;
    let mounts = mounts_of(opened.metadata()?.rdev(), &std::fs::read_to_string("/proc/self/mountinfo")?);
    for mount in &mounts {
        rustix::fs::syncfs(std::fs::File::open(mount)?)?;
    }
    opened.sync_all()?;
    Ok(mounts)
}

fn mounts_of(device: u64, mountinfo: &str) -> Vec<PathBuf> {
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let place = |line: &str| {
        let mut fields = line.split(' ').skip(2);
        (fields.next() == Some(&number)).then(|| fields.nth(1).map(unescape)).flatten()
    };
    mountinfo.lines().filter_map(place).collect()
}

/// The kernel writes blanks and the like as `\040`.
fn unescape(text: &str) -> PathBuf {
    let mut parts = text.split('\\');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                whole.push(char::from(byte));
                whole.push_str(&part[3..]);
            }
            None => {
                whole.push('\\');
                whole.push_str(part);
            }
        }
    }
    PathBuf::from(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_by_the_number_of_their_device() {
        let mountinfo = "\
36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n\
37 35 7:3 / /srv/a\\040disk rw - ext4 /dev/loop3 rw\n\
38 35 7:3 /sub /other rw - ext4 /dev/loop3 rw\n";
        let of = |major, minor| mounts_of(rustix::fs::makedev(major, minor), mountinfo);
        assert_eq!(of(7, 3), [Path::new("/srv/a disk"), Path::new("/other")]);
        assert_eq!(of(98, 0), [Path::new("/mnt2")]);
        assert!(of(7, 4).is_empty());
    }
}
