//! What the proxy offers and nothing behind it can do yet. All of it is here, and each answer says so.

use tonic::Status;

use super::engines::Engine;
use crate::Refusal;

pub fn backup(volume: &str) -> Status {
    let of = if volume.is_empty() { String::new() } else { format!(" of volume {volume}") };
    Refusal::Unimplemented(format!("backups{of} are not made through the instance manager yet")).into()
}

pub fn clone(engine: &Engine) -> Status {
    Refusal::Unimplemented(format!(
        "volume {} cannot be filled from another engine yet; `granary replica clone` makes a replica from a snapshot",
        engine.volume
    ))
    .into()
}

/// A discard never touches snapshots here, so leaving that off is fine.
pub fn unmap_mark(engine: &Engine, enabled: bool) -> Result<(), Status> {
    if !enabled {
        return Ok(());
    }
    Err(Refusal::Unimplemented(format!(
        "volume {}: a discard cannot remove snapshots; remove and purge them by themselves",
        engine.volume
    ))
    .into())
}

pub fn mark_failed(engine: &Engine, address: &str) -> Status {
    Refusal::Unimplemented(format!(
        "volume {}: a replica cannot be marked as failed from outside; remove {address} instead",
        engine.volume
    ))
    .into()
}

pub fn add_while_restoring(engine: &Engine) -> Status {
    Refusal::Unimplemented(format!("volume {} cannot be restored from a backup yet", engine.volume)).into()
}
