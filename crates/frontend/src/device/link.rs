//! A symbolic link that leads to a device while it is attached. Nothing but a link is ever replaced or removed.

use std::io;
use std::path::Path;

/// Replaces a link in one step, and only a link.
pub(super) fn point(link: &Path, device: &Path) -> io::Result<()> {
    if let Some(directory) = link.parent() {
        std::fs::create_dir_all(directory)?;
    }
    if std::fs::symlink_metadata(link).is_ok_and(|there| !there.is_symlink()) {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let new = link.with_extension("new");
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::os::unix::fs::symlink(device, &new)?;
    std::fs::rename(&new, link)
}

/// Removes it, unless it leads elsewhere by now.
pub(super) fn remove(link: &Path, device: &Path) {
    if std::fs::read_link(link).is_ok_and(|target| target == device)
        && let Err(error) = std::fs::remove_file(link)
    {
        tracing::warn!(link = %link.display(), %error, "the link to a device stays behind");
    }
}
