//! Remembers that the kernel may have dropped writes: a sync that failed leaves pages that look written and are not,
//! and a process that starts again would never know. Whoever asks for the boot then hears of another one, which means
//! to an engine what a restart of the machine means: what was not flushed may be gone.

use std::io;

use uuid::Uuid;

use crate::disk::Disk;

const FILE: &str = "doubt";

/// Writes may be gone from now on. Needs no sync of its own: should the machine restart, the boot changes anyway.
pub(super) fn raise(disk: &dyn Disk) -> io::Result<()> {
    match disk.remove(FILE) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    disk.create(FILE)?.write_at(0, Uuid::new_v4().simple().to_string().as_bytes())
}

/// What changes whenever writes that were not synced may be gone.
pub(super) fn boot(disk: &dyn Disk) -> io::Result<String> {
    let boot = disk.boot_id()?;
    let file = match disk.open_read_only(FILE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(boot),
        other => other?,
    };
    let mut token = vec![0; file.size()?.min(64) as usize];
    file.read_at(0, &mut token)?;
    Ok(format!("{boot}+{}", String::from_utf8_lossy(&token)))
}

/// Makes memory show what is on disk: pages of a write-back that failed look right, and would vanish later.
pub(super) fn settle(disk: &dyn Disk) -> io::Result<()> {
    let names = disk.names()?;
    if !names.iter().any(|name| name == FILE) {
        return Ok(());
    }
    for name in names {
        let file = disk.open(&name)?;
        file.sync()?;
        file.forget(0..file.size()?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::simulated::Simulated;

    #[test]
    fn every_doubt_makes_another_boot() {
        let disk = Simulated::new();
        let first = boot(&disk).unwrap();
        assert_eq!(boot(&disk).unwrap(), first);
        raise(&disk).unwrap();
        let second = boot(&disk).unwrap();
        raise(&disk).unwrap();
        let third = boot(&disk).unwrap();
        assert!(first != second && second != third && first != third);
    }
}
