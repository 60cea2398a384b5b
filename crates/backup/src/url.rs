//! The URLs of backup targets and of single backups, parsed and written in the form that existing clusters have stored.
//! Must never do I/O: whoever needs the NFS export mounted does that first and says where.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use percent_encoding::percent_decode_str;

use crate::names::{BackupName, InvalidName, VolumeName};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    #[error("{0:?} is not a URL of the form SCHEME://…")]
    NoScheme(String),
    #[error("backup targets of the kind {0:?} are not supported; use s3://, nfs:// or file://")]
    Scheme(String),
    #[error("{0:?} must be of the form {1}")]
    Form(String, &'static str),
    #[error("{0:?} says {1:?} twice")]
    Repeated(String, &'static str),
    #[error("{0:?} names no {1}")]
    Incomplete(String, &'static str),
    #[error(transparent)]
    Name(#[from] InvalidName),
}

/// Where backups go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetUrl {
    text: String,
    kind: TargetKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetKind {
    /// A directory of this machine: `file:///path` or, as Longhorn has it, `vfs:///path`.
    Directory(PathBuf),
    /// `nfs://host/path`, or Longhorn's `nfs://host:/path`; `options` as in `?nfsOptions=soft,timeo=330`.
    Nfs { host: String, path: String, options: Vec<String> },
    /// `s3://bucket@region/prefix`
    S3 { bucket: String, region: Option<String>, prefix: String },
}

impl TargetUrl {
    pub fn kind(&self) -> &TargetKind {
        &self.kind
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for TargetUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl FromStr for TargetUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| InvalidUrl::NoScheme(text.into()))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match place.find('/') {
            Some(slash) => place.split_at(slash),
            None => (place, ""),
        };
        let kind = match scheme {
            "file" | "vfs" => directory(text, authority, path)?,
            "nfs" => nfs(text, authority, path, query)?,
            "s3" => s3(text, authority, path)?,
            _ => return Err(InvalidUrl::Scheme(scheme.into())),
        };
        Ok(Self { text: text.into(), kind })
    }
}

fn directory(text: &str, authority: &str, path: &str) -> Result<TargetKind, InvalidUrl> {
    let path = Path::new(path);
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !authority.is_empty() || path.parent().is_none() || !plain {
        return Err(InvalidUrl::Form(text.into(), "file:///absolute/path"));
    }
    Ok(TargetKind::Directory(path.to_owned()))
}

fn nfs(text: &str, authority: &str, path: &str, query: &str) -> Result<TargetKind, InvalidUrl> {
    let host = authority.strip_suffix(':').unwrap_or(authority);
    if host.is_empty() || path.is_empty() {
        return Err(InvalidUrl::Form(text.into(), "nfs://host/path"));
    }
    let options = pairs(query)
        .filter(|(key, _)| key == "nfsOptions")
        .flat_map(|(_, value)| value.split(',').map(str::to_owned).collect::<Vec<_>>())
        .filter(|option| !option.is_empty())
        .collect();
    Ok(TargetKind::Nfs { host: host.into(), path: path.into(), options })
}

fn s3(text: &str, authority: &str, path: &str) -> Result<TargetKind, InvalidUrl> {
    let (bucket, region) = match authority.split_once('@') {
        Some((bucket, region)) => (bucket, Some(region)),
        None => (authority, None),
    };
    let prefix = path.trim_matches('/');
    let odd = |part: &str| part.is_empty() || part == "." || part == "..";
    let bad_prefix = !prefix.is_empty() && prefix.split('/').any(odd);
    if bucket.is_empty() || region == Some("") || bad_prefix {
        return Err(InvalidUrl::Form(text.into(), "s3://bucket@region/prefix"));
    }
    Ok(TargetKind::S3 { bucket: bucket.into(), region: region.map(Into::into), prefix: prefix.into() })
}

/// One volume's backups in a target, or one backup of it: `<target>?backup=<name>&volume=<volume>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupUrl {
    pub target: TargetUrl,
    pub volume: VolumeName,
    pub backup: Option<BackupName>,
}

impl BackupUrl {
    /// The backup, where a URL has to name one.
    pub fn require_backup(&self) -> Result<&BackupName, InvalidUrl> {
        self.backup.as_ref().ok_or_else(|| InvalidUrl::Incomplete(self.to_string(), "backup"))
    }
}

impl FromStr for BackupUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let (target, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut volume, mut backup) = (None, None);
        let mut others = Vec::new();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (slot, name, value) = match pair(part) {
                (key, value) if key == "volume" => (&mut volume, "volume", value),
                (key, value) if key == "backup" => (&mut backup, "backup", value),
                _ => {
                    others.push(part);
                    continue;
                }
            };
            if slot.replace(value).is_some() {
                return Err(InvalidUrl::Repeated(text.into(), name));
            }
        }
        let target = match others.as_slice() {
            [] => target.parse()?,
            others => format!("{target}?{}", others.join("&")).parse()?,
        };
        let volume = volume.ok_or_else(|| InvalidUrl::Incomplete(text.into(), "volume"))?;
        let backup = backup.filter(|name| !name.is_empty());
        Ok(Self {
            target,
            volume: VolumeName::new(volume)?,
            backup: backup.map(BackupName::new).transpose()?,
        })
    }
}

impl fmt::Display for BackupUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.target.as_str().contains('?') { '&' } else { '?' };
        write!(out, "{}{separator}", self.target)?;
        if let Some(backup) = &self.backup {
            write!(out, "backup={backup}&")?;
        }
        write!(out, "volume={}", self.volume)
    }
}

fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    query.split('&').filter(|part| !part.is_empty()).map(pair)
}

fn pair(part: &str) -> (String, String) {
    let decode = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let (key, value) = part.split_once('=').unwrap_or((part, ""));
    (decode(key), decode(value))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{BackupUrl, TargetKind, TargetUrl};

    fn kind(text: &str) -> TargetKind {
        text.parse::<TargetUrl>().unwrap().kind().clone()
    }

    #[test]
    fn targets_of_every_kind() {
        let s3 = |region: Option<&str>, prefix: &str| TargetKind::S3 {
            bucket: "b".into(),
            region: region.map(Into::into),
            prefix: prefix.into(),
        };
        assert_eq!(kind("s3://b@us-east-1/"), s3(Some("us-east-1"), ""));
        assert_eq!(kind("s3://b@us-east-1/some/where/"), s3(Some("us-east-1"), "some/where"));
        assert_eq!(kind("s3://b/x"), s3(None, "x"));
        assert_eq!(kind("file:///var/backups"), TargetKind::Directory(PathBuf::from("/var/backups")));
        assert_eq!(kind("vfs:///var/backups"), TargetKind::Directory(PathBuf::from("/var/backups")));
        let nfs = TargetKind::Nfs {
            host: "h".into(),
            path: "/x".into(),
            options: vec!["soft".into(), "timeo=330".into()],
        };
        assert_eq!(kind("nfs://h:/x?nfsOptions=soft,timeo=330"), nfs);
        assert_eq!(kind("nfs://h/x?nfsOptions=soft&nfsOptions=timeo%3D330"), nfs);
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for text in [
            "",
            "s3",
            "s3://",
            "s3:///x",
            "s3://b@/x",
            "s3://b/../x",
            "s3://b/a//b",
            "ftp://h/x",
            "cifs://h/x",
            "file://",
            "file:///",
            "file://host/x",
            "file:///a/../../etc",
            "nfs://h",
            "nfs:///x",
        ] {
            assert!(text.parse::<TargetUrl>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_backup_url_keeps_what_belongs_to_the_target() {
        let text = "nfs://h:/x?nfsOptions=soft&backup=backup-1&volume=pvc-1";
        let url: BackupUrl = text.parse().unwrap();
        assert_eq!(url.target.as_str(), "nfs://h:/x?nfsOptions=soft");
        assert_eq!(url.require_backup().unwrap().as_str(), "backup-1");
        assert_eq!(url.to_string(), text);
        let volume: BackupUrl = "s3://b@r/p?volume=pvc-1".parse().unwrap();
        assert!(volume.require_backup().is_err());
        assert_eq!(volume.to_string(), "s3://b@r/p?volume=pvc-1");
    }

    #[test]
    fn hostile_backup_urls_are_refused() {
        for query in [
            "",
            "backup=b1",
            "volume=",
            "volume=..%2F..%2Fetc",
            "volume=v1&volume=v2",
            "volume=v1&backup=..%2fx",
            "volume=v1&backup=b%00",
        ] {
            assert!(format!("s3://b@r/p?{query}").parse::<BackupUrl>().is_err(), "{query:?}");
        }
    }
}
