//! What a user writes after `--frontend`, parsed: where a volume is to be reached.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::device::Way;
use crate::nbd::{NbdUrl, ServerTls, TlsError, TlsFiles, UrlError};

/// - `nbd+unix:///run/x.sock`, `nbd://127.0.0.1:10809`, with TLS
///   `nbds://0.0.0.0?tls-cert=C.pem&tls-key=K.pem[&tls-client-ca=A.pem]`, or `nbd://…` with the same parameters for
///   a server that serves plain clients too;
/// - `fuse:///mnt/x`: the file `/mnt/x/volume`;
/// - `device`, `device:///dev/granary/x`: a block device, and a link to it, by the best way this kernel has;
///   `device?via=ublk`, `device:///dev/granary/x?via=loop`: by this way and no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrontendSpec {
    Nbd { url: NbdUrl, tls: Option<TlsFiles> },
    Fuse(PathBuf),
    Device { link: Option<PathBuf>, via: Option<Way> },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    #[error(
        "{0:?} is not a frontend; use nbd+unix:///PATH, nbd://HOST:PORT, fuse:///DIRECTORY, device or \
         device:///LINK, the last two with ?via=ublk or ?via=loop if need be"
    )]
    Unknown(String),
    #[error("{0:?} needs an absolute path")]
    Path(String),
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error("{0:?} has another parameter than via=ublk or via=loop")]
    Way(String),
    #[error("{0:?} needs both tls-cert and tls-key")]
    Tls(String),
}

impl FrontendSpec {
    /// Reads the certificates that the specification names.
    pub fn server_tls(url: &NbdUrl, tls: Option<&TlsFiles>) -> Result<ServerTls, TlsError> {
        Ok(match tls {
            None => ServerTls::Off,
            Some(files) if url.tls => ServerTls::Required(files.server_config()?),
            Some(files) => ServerTls::Allowed(files.server_config()?),
        })
    }
}

impl FromStr for FrontendSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let absolute = |path: &str| {
            if path.starts_with('/') { Ok(PathBuf::from(path)) } else { Err(SpecError::Path(text.into())) }
        };
        if let Some(device) = text.strip_prefix("device") {
            let (place, query) =
                device.split_once('?').map_or((device, None), |(place, query)| (place, Some(query)));
            let link = match place.strip_prefix("://") {
                Some(link) => Some(absolute(link)?),
                None if place.is_empty() => None,
                None => return Err(SpecError::Unknown(text.into())),
            };
            let via = query.map(|query| query.strip_prefix("via=").and_then(|way| way.parse().ok()));
            return match via {
                Some(None) => Err(SpecError::Way(text.into())),
                via => Ok(Self::Device { link, via: via.flatten() }),
            };
        }
        match text.split_once("://") {
            Some(("fuse", path)) => Ok(Self::Fuse(absolute(path)?)),
            Some((scheme, _)) if scheme.starts_with("nbd") => nbd(text),
            _ => Err(SpecError::Unknown(text.into())),
        }
    }
}

fn nbd(text: &str) -> Result<FrontendSpec, SpecError> {
    let (mut certificate, mut key, mut client_authority) = (None, None, None);
    let url = NbdUrl::parse_with(text, |name, value| {
        let value = Some(PathBuf::from(value));
        match name {
            "tls-cert" => certificate = value,
            "tls-key" => key = value,
            "tls-client-ca" => client_authority = value,
            _ => return false,
        }
        true
    })?;
    let tls = match (certificate, key) {
        (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key, client_authority }),
        (None, None) if !url.tls && client_authority.is_none() => None,
        _ => return Err(SpecError::Tls(text.into())),
    };
    Ok(FrontendSpec::Nbd { url, tls })
}

impl fmt::Display for FrontendSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nbd { url, .. } => url.fmt(f),
            Self::Fuse(path) => write!(f, "fuse://{}", path.display()),
            Self::Device { link, via } => {
                f.write_str("device")?;
                if let Some(link) = link {
                    write!(f, "://{}", link.display())?;
                }
                via.map_or(Ok(()), |way| write!(f, "?via={way}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_people_write() {
        let plain = |url: &str| FrontendSpec::Nbd { url: url.parse().unwrap(), tls: None };
        let files = TlsFiles { certificate: "c".into(), key: "k".into(), client_authority: Some("a".into()) };
        let tls = FrontendSpec::Nbd { url: "nbds://h:1".parse().unwrap(), tls: Some(files) };
        let device = |link: Option<&str>, via| FrontendSpec::Device { link: link.map(PathBuf::from), via };
        for (text, expected) in [
            ("nbd+unix:///run/x.sock", plain("nbd+unix:///run/x.sock")),
            ("nbd://127.0.0.1:10809", plain("nbd://127.0.0.1:10809")),
            ("nbds://h:1?tls-cert=c&tls-key=k&tls-client-ca=a", tls),
            ("fuse:///mnt/x", FrontendSpec::Fuse("/mnt/x".into())),
            ("device", device(None, None)),
            ("device?via=ublk", device(None, Some(Way::Ublk))),
            ("device:///dev/granary/x", device(Some("/dev/granary/x"), None)),
            ("device:///dev/granary/x?via=loop", device(Some("/dev/granary/x"), Some(Way::Loop))),
        ] {
            assert_eq!(text.parse().as_ref(), Ok(&expected), "{text}");
            if text.starts_with("device") {
                assert_eq!(expected.to_string(), text);
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for text in [
            "",
            "ublk",
            "http://x",
            "fuse://x",
            "device://x",
            "device?via=iscsi",
            "device?link=/x",
            "devices",
            "nbds://h",
            "nbd://h?tls-cert=c",
            "nbd://h?x=y",
        ] {
            let error = text.parse::<FrontendSpec>().unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
