//! The address of an NBD export, as libnbd and QEMU write it: parsed and formatted, nothing else.
//! `nbd+unix:///run/x.sock` without a query names the socket itself, which the others have no short form for.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

pub const DEFAULT_PORT: u16 = 10809;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NbdUrl {
    pub address: Address,
    pub tls: bool,
    /// Empty for the default export.
    pub export: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Unix(PathBuf),
    Tcp { host: String, port: u16 },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("{0:?} is not an NBD address; those begin with nbd://, nbds://, nbd+unix:// or nbds+unix://")]
    Scheme(String),
    #[error("{0:?} names no host; write nbd://HOST[:PORT][/EXPORT]")]
    Host(String),
    #[error("{0:?} has no port that is a number")]
    Port(String),
    #[error("{0:?} names no socket; write nbd+unix:///PATH or nbd+unix:///EXPORT?socket=PATH")]
    Socket(String),
    #[error("{0:?} holds an escape that is not UTF-8")]
    Escape(String),
    #[error("{url:?} has the parameter {key:?}, which means nothing here")]
    Parameter { url: String, key: String },
}

impl NbdUrl {
    /// Splits the address from its parameters; those it does not know are handed to `other`, which says whether it
    /// took them.
    pub fn parse_with(text: &str, mut other: impl FnMut(&str, &str) -> bool) -> Result<Self, UrlError> {
        let scheme_error = || UrlError::Scheme(text.into());
        let (scheme, rest) = text.split_once("://").ok_or_else(scheme_error)?;
        let (tls, unix) = match scheme {
            "nbd" => (false, false),
            "nbds" => (true, false),
            "nbd+unix" => (false, true),
            "nbds+unix" => (true, true),
            _ => return Err(scheme_error()),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut socket = None;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(value, text)?;
            if key == "socket" && unix {
                socket = Some(PathBuf::from(value));
            } else if !other(key, &value) {
                return Err(UrlError::Parameter { url: text.into(), key: key.into() });
            }
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if unix {
            return unix_url(text, authority, path, socket, tls);
        }
        let export = decode(path.strip_prefix('/').unwrap_or(path), text)?;
        let (host, port) = host_and_port(authority, text)?;
        Ok(Self { address: Address::Tcp { host, port }, tls, export })
    }
}

fn unix_url(
    text: &str,
    authority: &str,
    path: &str,
    socket: Option<PathBuf>,
    tls: bool,
) -> Result<NbdUrl, UrlError> {
    let path_text = decode(path, text)?;
    let (socket, export) = match socket {
        Some(socket) => (socket, path_text.strip_prefix('/').unwrap_or(&path_text).to_owned()),
        None => (PathBuf::from(path_text), String::new()),
    };
    if !authority.is_empty() || socket.as_os_str().is_empty() || socket.as_os_str() == "/" {
        return Err(UrlError::Socket(text.into()));
    }
    Ok(NbdUrl { address: Address::Unix(socket), tls, export })
}

fn host_and_port(authority: &str, text: &str) -> Result<(String, u16), UrlError> {
    // An IPv6 address stands in brackets, because it has colons of its own.
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => {
            (host, Some(port.strip_prefix(':').ok_or_else(|| UrlError::Port(text.into()))?))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.is_empty() {
        return Err(UrlError::Host(text.into()));
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => port.parse().map_err(|_| UrlError::Port(text.into()))?,
    };
    Ok((host.to_owned(), port))
}

fn decode(part: &str, text: &str) -> Result<String, UrlError> {
    match percent_decode_str(part).decode_utf8() {
        Ok(decoded) => Ok(decoded.into_owned()),
        Err(_) => Err(UrlError::Escape(text.into())),
    }
}

impl FromStr for NbdUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        Self::parse_with(text, |_, _| false)
    }
}

/// What would end a path or a value early.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'&').add(b'?').add(b'+');

impl fmt::Display for NbdUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "nbds" } else { "nbd" };
        let export = utf8_percent_encode(&self.export, ESCAPED);
        match &self.address {
            Address::Unix(path) => {
                let path = path.to_string_lossy();
                write!(f, "{scheme}+unix:///{export}?socket={}", utf8_percent_encode(&path, ESCAPED))
            }
            Address::Tcp { host, port } => {
                let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
                write!(f, "{scheme}://{open}{host}{close}:{port}/{export}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tcp(host: &str, port: u16, export: &str) -> NbdUrl {
        NbdUrl { address: Address::Tcp { host: host.into(), port }, tls: false, export: export.into() }
    }

    fn unix(path: &str, export: &str) -> NbdUrl {
        NbdUrl { address: Address::Unix(path.into()), tls: false, export: export.into() }
    }

    #[test]
    fn the_forms_people_write() {
        for (text, expected) in [
            ("nbd://host", tcp("host", 10809, "")),
            ("nbd://127.0.0.1:10810/disk%201", tcp("127.0.0.1", 10810, "disk 1")),
            ("nbd://[::1]:7/x", tcp("::1", 7, "x")),
            ("nbd://[::1]", tcp("::1", 10809, "")),
            ("nbds://host/x", NbdUrl { tls: true, ..tcp("host", 10809, "x") }),
            ("nbd+unix:///run/x.sock", unix("/run/x.sock", "")),
            ("nbd+unix:///?socket=/run/x.sock", unix("/run/x.sock", "")),
            ("nbd+unix:///disk?socket=/run/x.sock", unix("/run/x.sock", "disk")),
            ("nbds+unix:///disk?socket=s", NbdUrl { tls: true, ..unix("s", "disk") }),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for text in [
            "http://x",
            "nbd:x",
            "nbd://",
            "nbd://:5",
            "nbd://h:x",
            "nbd://[::1]x",
            "nbd+unix://",
            "nbd+unix://host/x",
            "nbd://h?socket=/x",
            "nbd://h/%ff",
        ] {
            let error = text.parse::<NbdUrl>().unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    proptest! {
        #[test]
        fn formatting_and_parsing_agree(
            export in "\\PC{0,12}", path in "/\\PC{1,12}", port: u16, tls: bool, local: bool,
        ) {
            let address = if local {
                Address::Unix(path.into())
            } else {
                Address::Tcp { host: "h".into(), port }
            };
            let url = NbdUrl { address, tls, export };
            prop_assert_eq!(url.to_string().parse(), Ok(url));
        }
    }
}
