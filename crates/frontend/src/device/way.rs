//! Which way a volume becomes a block device: what was asked for, and what this kernel has.

use std::fmt;
use std::str::FromStr;

use super::DeviceError;
use crate::ublk;

/// How the kernel reaches the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Ublk,
    /// A loop device over the file of a FUSE mount.
    Loop,
}

impl Way {
    /// The one asked for, if this kernel has it; otherwise the best there is.
    pub(super) async fn choose(wanted: Option<Self>) -> Result<Self, DeviceError> {
        let (way, why) = match wanted {
            Some(Self::Loop) => (Self::Loop, "as was asked for".to_owned()),
            Some(Self::Ublk) => {
                ublk::probe().await?;
                (Self::Ublk, "as was asked for".to_owned())
            }
            None => match ublk::probe().await {
                Ok(()) => (Self::Ublk, "the best this kernel has".to_owned()),
                Err(unusable) => (Self::Loop, unusable.to_string()),
            },
        };
        let by = match way {
            Self::Ublk => "ublk",
            Self::Loop => "a loop device over FUSE",
        };
        tracing::info!("block device by {by}: {why}");
        Ok(way)
    }
}

impl FromStr for Way {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "ublk" => Ok(Self::Ublk),
            "loop" => Ok(Self::Loop),
            _ => Err(()),
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ublk => "ublk",
            Self::Loop => "loop",
        })
    }
}
