//! The volume's key: what engine and replicas of a volume share and prove to each other.
//! Its bytes are never logged, shown, or sent.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ring::{digest, hmac};

/// Shorter secrets could be guessed by somebody who recorded a handshake.
const MIN_LEN: usize = 16;

/// A larger file is surely not a key.
const MAX_LEN: u64 = 64 << 10;

/// Derived from the key file's bytes without trailing line ends, whatever they are.
#[derive(Clone)]
pub struct Key(hmac::Key);

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("cannot read the key file {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "the key has {0} bytes, and at least {MIN_LEN} are needed; make one with 'head -c 32 /dev/urandom | base64'"
    )]
    TooShort(usize),
    #[error("{path} has {len} bytes: that is not a key file")]
    TooLong { path: PathBuf, len: u64 },
}

impl Key {
    /// Reads a key file, and warns when others on the machine can read it too.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let refused = |source| KeyError::Read { path: path.to_owned(), source };
        let metadata = std::fs::metadata(path).map_err(refused)?;
        if metadata.len() > MAX_LEN {
            return Err(KeyError::TooLong { path: path.to_owned(), len: metadata.len() });
        }
        if metadata.mode() & 0o004 != 0 {
            tracing::warn!(
                path = %path.display(),
                "everybody on this machine can read the volume's key; 'chmod o-r' the file"
            );
        }
        Self::from_bytes(&std::fs::read(path).map_err(refused)?)
    }

    pub fn from_bytes(secret: &[u8]) -> Result<Self, KeyError> {
        let mut secret = secret;
        while let [rest @ .., b'\n' | b'\r'] = secret {
            secret = rest;
        }
        if secret.len() < MIN_LEN {
            return Err(KeyError::TooShort(secret.len()));
        }
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(b"granary volume key 1\0");
        context.update(secret);
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, context.finish().as_ref())))
    }

    pub(super) fn hmac(&self) -> &hmac::Key {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(key: &Key) -> Vec<u8> {
        hmac::sign(key.hmac(), b"x").as_ref().to_vec()
    }

    #[test]
    fn line_ends_do_not_matter_and_everything_else_does() {
        let key = |bytes: &[u8]| sign(&Key::from_bytes(bytes).unwrap());
        assert_eq!(key(b"0123456789abcdef"), key(b"0123456789abcdef\r\n\n"));
        assert_ne!(key(b"0123456789abcdef"), key(b"0123456789abcdef "));
        assert_ne!(key(b"0123456789abcdef"), key(b"0123456789abcdeg"));
    }

    #[test]
    fn a_short_or_missing_key_says_what_to_do() {
        let short = Key::from_bytes(b"secret\n").unwrap_err().to_string();
        assert!(short.contains("6 bytes") && short.contains("urandom"), "{short}");
        let missing = Key::read(Path::new("/nonexistent/key")).unwrap_err().to_string();
        assert!(missing.contains("/nonexistent/key"), "{missing}");
    }

    #[test]
    fn a_key_never_shows_itself() {
        let key = Key::from_bytes(b"correct horse battery staple").unwrap();
        assert_eq!(format!("{key:?}"), "Key(secret)");
    }
}
