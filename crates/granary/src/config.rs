//! Settings of `granary up`: flags, then environment, then the file, then defaults. Read once, at the start.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::arguments::UpArgs;

pub const DEFAULT_PORT: u16 = 8443;

/// The file's form; unknown keys are refused, so that a typing error does not go unnoticed.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    data_dir: Option<PathBuf>,
    listen: Option<SocketAddr>,
    log: Option<String>,
    /// Names or addresses that clients use besides the address listened on; they go into the certificate.
    #[serde(default)]
    names: Vec<String>,
    /// How long watches can be resumed, e.g. 300.
    history_seconds: Option<u64>,
}

#[derive(Debug)]
pub struct Config {
    pub data_dir: PathBuf,
    pub listen: SocketAddr,
    pub log: String,
    pub names: Vec<String>,
    pub history: Duration,
}

impl Config {
    pub fn gather(up: &UpArgs, connection: &granary_cli::ConnectionArgs) -> anyhow::Result<Self> {
        let file = match &up.config {
            Some(path) => read(path)?,
            None => File::default(),
        };
        let environment = granary_cli::Environment::of_process();
        let data_dir = connection
            .data_dir
            .clone()
            .or_else(|| environment.granary_data_dir.clone())
            .or(file.data_dir)
            .or_else(|| environment.default_data_dir());
        let Some(data_dir) = data_dir else {
            bail!("there is no home directory to keep data in; name one with --data-dir");
        };
        let history = file.history_seconds.unwrap_or(300);
        if history == 0 {
            bail!("historySeconds must be at least 1");
        }
        Ok(Self {
            data_dir: std::path::absolute(&data_dir).context("the data directory")?,
            listen: up.listen.or(file.listen).unwrap_or((Ipv4Addr::LOCALHOST, DEFAULT_PORT).into()),
            log: up.log.clone().or(file.log).unwrap_or_else(|| "info".into()),
            names: file.names,
            history: Duration::from_secs(history),
        })
    }
}

fn read(path: &Path) -> anyhow::Result<File> {
    let text = std::fs::read_to_string(path).with_context(|| format!("settings file {}", path.display()))?;
    if text.trim().is_empty() {
        return Ok(File::default());
    }
    serde_saphyr::from_str(&text).with_context(|| format!("settings file {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{File, read};

    #[test]
    fn a_misspelt_setting_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("granary.yaml");
        std::fs::write(&path, "listne: 127.0.0.1:1\n").unwrap();
        let error = format!("{:#}", read(&path).unwrap_err());
        assert!(error.contains("listne"), "{error}");
        std::fs::write(&path, "listen: 127.0.0.1:1\nnames: [store.example.com]\n").unwrap();
        let file: File = read(&path).unwrap();
        assert_eq!(file.listen.unwrap().port(), 1);
    }
}
