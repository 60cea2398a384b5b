//! The names of volumes and backups, checked once: whatever holds one of these types can be put into an object key.
//! Must never let a name through that leaves its directory or does not fit a file name.

use std::fmt;
use std::str::FromStr;

/// `backup_` and `.cfg` around a name still have to fit the 255 bytes of a file name.
pub const MAX_NAME: usize = 240;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} name {name:?} is not usable: {reason}")]
pub struct InvalidName {
    kind: &'static str,
    name: String,
    reason: &'static str,
}

fn check(kind: &'static str, name: &str) -> Result<(), InvalidName> {
    let invalid = |reason| {
        // A hostile name may be megabytes long; the message need not be.
        let name = name.chars().take(64).collect();
        Err(InvalidName { kind, name, reason })
    };
    let bytes = name.as_bytes();
    match bytes {
        [] => return invalid("it is empty"),
        [_] => return invalid("it has fewer than two characters"),
        _ if bytes.len() > MAX_NAME => return invalid("it is longer than 240 characters"),
        [first, ..] if !first.is_ascii_alphanumeric() => {
            return invalid("it must begin with a letter or digit");
        }
        _ => {}
    }
    if !bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(byte)) {
        return invalid("only letters, digits, '_', '.' and '-' are allowed");
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(String);

        impl $type {
            pub fn new(name: impl Into<String>) -> Result<Self, InvalidName> {
                let name = name.into();
                check($kind, &name)?;
                Ok(Self(name))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }

        impl FromStr for $type {
            type Err = InvalidName;

            fn from_str(name: &str) -> Result<Self, InvalidName> {
                Self::new(name)
            }
        }
    };
}

name!(
    /// The name under which a volume's backups are kept.
    VolumeName,
    "volume"
);
name!(
    /// The name of one backup, unique within its volume.
    BackupName,
    "backup"
);

#[cfg(test)]
mod tests {
    use super::{BackupName, MAX_NAME, VolumeName};

    #[test]
    fn ordinary_names_pass() {
        for name in ["pvc-0f6c1f9e-11aa", "backup-c4d3a8e1", "v1", "A_b.c-d", "0.."] {
            assert_eq!(VolumeName::new(name).unwrap().as_str(), name);
        }
        assert!(BackupName::new("x".repeat(MAX_NAME)).is_ok());
    }

    #[test]
    fn hostile_names_are_refused() {
        let long = "x".repeat(MAX_NAME + 1);
        for name in
            ["", "a", "..", "../x", "a/b", "a\\b", "-x", ".hidden", "a\0b", "a b", "ü1", "a\n", long.as_str()]
        {
            assert!(VolumeName::new(name).is_err(), "{name:?}");
            assert!(BackupName::new(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_message_stays_short() {
        let error = VolumeName::new("/".repeat(1 << 20)).unwrap_err();
        assert!(error.to_string().len() < 200);
    }
}
