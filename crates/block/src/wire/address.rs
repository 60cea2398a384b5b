//! Where a replica listens: a TCP address, or a unix socket when engine and replica share a machine.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// `HOST:PORT`, `tcp://HOST:PORT` or `unix:///path`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Address {
    Tcp(String),
    Unix(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no address: write HOST:PORT, [IPV6]:PORT or unix:///path/of/socket")]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let refused = || AddressError(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.starts_with('/') { Ok(Self::Unix(path.into())) } else { Err(refused()) };
        }
        let target = text.strip_prefix("tcp://").unwrap_or(text);
        let (host, port) = target.rsplit_once(':').ok_or_else(refused)?;
        let bare_v6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
        if host.is_empty() || bare_v6 || host.contains('/') || port.parse::<u16>().is_err() {
            return Err(refused());
        }
        Ok(Self::Tcp(target.to_owned()))
    }
}

impl TryFrom<String> for Address {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(target) => f.write_str(target),
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_back_as_it_is_shown() {
        for (text, shown) in [
            ("10.0.0.1:9000", "10.0.0.1:9000"),
            ("tcp://storage-1:9000", "storage-1:9000"),
            ("[::1]:0", "[::1]:0"),
            ("unix:///run/r.sock", "unix:///run/r.sock"),
            ("unix:/run/r.sock", "unix:///run/r.sock"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(shown.parse::<Address>().unwrap(), address);
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_grammar() {
        for text in
            ["", "host", "host:", ":80", "host:port", "::1:80", "unix:run/x", "http://h:80", "h:99999"]
        {
            let message = text.parse::<Address>().unwrap_err().to_string();
            assert!(message.contains("HOST:PORT"), "{text}: {message}");
        }
    }
}
