//! What a request may say about its target: keys, endpoint, certificate, proxies. One value per request.
//! Must never read or write the process environment, nor show a secret in a debug print.

use std::collections::BTreeMap;
use std::fmt;

/// The keys that a request may carry. A key outside of this list is refused together with the whole request:
/// it may be meant for a library that lets itself be commanded by variables.
pub const ALLOWED_KEYS: [&str; 15] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_ENDPOINTS",
    "AWS_CERT",
    "VIRTUAL_HOSTED_STYLE",
    "AWS_SIGN_ACCEPT_ENCODING",
    "CIFS_USERNAME",
    "CIFS_PASSWORD",
    "AZBLOB_ACCOUNT_NAME",
    "AZBLOB_ACCOUNT_KEY",
    "AZBLOB_ENDPOINT",
    "AZBLOB_CERT",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCredentials {
    #[error("{0:?} is not a key that a backup request may carry; allowed are {allowed}", allowed = ALLOWED_KEYS.join(", "))]
    UnknownKey(String),
    #[error("entry {0} of the credentials is not of the form KEY=VALUE")]
    NotAPair(usize),
    #[error("{key} is {value:?}, but must be true or false")]
    NotABoolean { key: &'static str, value: String },
    #[error("{0} is missing in the credentials of the backup target")]
    Missing(&'static str),
    #[error("AWS_CERT does not hold PEM certificates: {0}")]
    Certificate(String),
    #[error("{key} is not a proxy's URL")]
    Proxy { key: &'static str },
}

#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    values: BTreeMap<&'static str, String>,
}

impl Credentials {
    pub fn none() -> Self {
        Self::default()
    }

    /// From `KEY=VALUE` entries, as a proxy request carries them.
    pub fn from_entries<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, InvalidCredentials> {
        let pairs = entries
            .into_iter()
            .enumerate()
            .map(|(position, entry)| entry.split_once('=').ok_or(InvalidCredentials::NotAPair(position)));
        Self::from_pairs(pairs.collect::<Result<Vec<_>, _>>()?)
    }

    /// From a Secret's data.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, InvalidCredentials> {
        let mut values = BTreeMap::new();
        for (key, value) in pairs {
            let key = ALLOWED_KEYS
                .into_iter()
                .find(|allowed| *allowed == key)
                .ok_or_else(|| InvalidCredentials::UnknownKey(key.chars().take(64).collect()))?;
            // Secrets are often made with a newline at the end.
            values.insert(key, value.trim().to_owned());
        }
        Ok(Self { values })
    }

    /// `None` when it is absent or empty.
    pub fn get(&self, key: &'static str) -> Option<&str> {
        self.values.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub fn require(&self, key: &'static str) -> Result<&str, InvalidCredentials> {
        self.get(key).ok_or(InvalidCredentials::Missing(key))
    }

    pub fn boolean(&self, key: &'static str) -> Result<Option<bool>, InvalidCredentials> {
        match self.get(key) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(value) => Err(InvalidCredentials::NotABoolean { key, value: value.to_owned() }),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.values.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{ALLOWED_KEYS, Credentials, InvalidCredentials};

    #[test]
    fn every_allowed_key_is_taken() {
        let credentials = Credentials::from_pairs(ALLOWED_KEYS.map(|key| (key, "value\n"))).unwrap();
        assert_eq!(credentials.get("AWS_CERT"), Some("value"));
    }

    #[test]
    fn one_foreign_key_refuses_all() {
        let entries = ["AWS_ACCESS_KEY_ID=a", "AWS_SHARED_CREDENTIALS_FILE=/etc/shadow"];
        let refused = Credentials::from_entries(entries).unwrap_err();
        assert_eq!(refused, InvalidCredentials::UnknownKey("AWS_SHARED_CREDENTIALS_FILE".into()));
        assert_eq!(Credentials::from_entries(["AWS_CERT"]), Err(InvalidCredentials::NotAPair(0)));
    }

    #[test]
    fn secrets_are_not_printed() {
        let credentials = Credentials::from_entries(["AWS_SECRET_ACCESS_KEY=hush=hush"]).unwrap();
        assert_eq!(credentials.get("AWS_SECRET_ACCESS_KEY"), Some("hush=hush"));
        assert!(!format!("{credentials:?}").contains("hush"));
    }
}
