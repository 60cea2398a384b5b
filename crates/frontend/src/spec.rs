//! What a user writes after `--frontend`, parsed: where a volume is to be reached.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::nbd::{NbdUrl, ServerTls, TlsError, TlsFiles, UrlError};

/// - `nbd+unix:///run/x.sock`, `nbd://127.0.0.1:10809`, with TLS
///   `nbds://0.0.0.0?tls-cert=C.pem&tls-key=K.pem[&tls-client-ca=A.pem]`, or `nbd://…` with the same parameters for
///   a server that serves plain clients too;
/// - `fuse:///mnt/x`: the file `/mnt/x/volume`;
/// - `device`, `device:///dev/granary/x`: a block device, and a link to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrontendSpec {
    Nbd { url: NbdUrl, tls: Option<TlsFiles> },
    Fuse(PathBuf),
    Device { link: Option<PathBuf> },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    #[error(
        "{0:?} is not a frontend; use nbd+unix:///PATH, nbd://HOST:PORT, fuse:///DIRECTORY, device or \
         device:///LINK"
    )]
    Unknown(String),
    #[error("{0:?} needs an absolute path")]
    Path(String),
    #[error(transparent)]
    Url(#[from] UrlError),
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
        if text == "device" {
            return Ok(Self::Device { link: None });
        }
        match text.split_once("://") {
            Some(("device", link)) => Ok(Self::Device { link: Some(absolute(link)?) }),
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
            Self::Device { link: None } => f.write_str("device"),
            Self::Device { link: Some(link) } => write!(f, "device://{}", link.display()),
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
        for (text, expected) in [
            ("nbd+unix:///run/x.sock", plain("nbd+unix:///run/x.sock")),
            ("nbd://127.0.0.1:10809", plain("nbd://127.0.0.1:10809")),
            ("nbds://h:1?tls-cert=c&tls-key=k&tls-client-ca=a", tls),
            ("fuse:///mnt/x", FrontendSpec::Fuse("/mnt/x".into())),
            ("device", FrontendSpec::Device { link: None }),
            ("device:///dev/granary/x", FrontendSpec::Device { link: Some("/dev/granary/x".into()) }),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
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
            "nbds://h",
            "nbd://h?tls-cert=c",
            "nbd://h?x=y",
        ] {
            let error = text.parse::<FrontendSpec>().unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
