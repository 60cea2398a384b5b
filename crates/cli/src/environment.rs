//! What the process's surroundings say, read once at start. Nothing else in this crate reads
//! an environment variable, so every decision can be tested with made-up surroundings.

use std::{
    ffi::OsString,
    io::IsTerminal,
    path::{Path, PathBuf},
};

/// Where root's data is kept.
const SYSTEM_DATA_DIR: &str = "/var/lib/granary";

/// The surroundings of a command.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `GRANARY_KUBECONFIG`
    pub granary_kubeconfig: Option<PathBuf>,
    /// `GRANARY_DATA_DIR`
    pub granary_data_dir: Option<PathBuf>,
    /// `KUBECONFIG`, a list of files as in `PATH`
    pub kubeconfig: Option<OsString>,
    /// `HOME`
    pub home: Option<PathBuf>,
    /// `XDG_DATA_HOME`
    pub xdg_data_home: Option<PathBuf>,
    pub is_root: bool,
    /// This process is a pod with a service account
    pub in_cluster: bool,
    /// `NO_COLOR` is set, or `TERM` is `dumb`
    pub no_colour: bool,
    pub stdout_is_terminal: bool,
    pub stderr_is_terminal: bool,
}

impl Environment {
    /// Reads the real surroundings of this process.
    pub fn of_process() -> Self {
        let path = |name: &str| set(name).map(PathBuf::from);
        Self {
            granary_kubeconfig: path("GRANARY_KUBECONFIG"),
            granary_data_dir: path("GRANARY_DATA_DIR"),
            kubeconfig: set("KUBECONFIG"),
            home: path("HOME"),
            xdg_data_home: path("XDG_DATA_HOME"),
            is_root: rustix::process::geteuid().is_root(),
            in_cluster: kube::Config::incluster().is_ok(),
            no_colour: set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb"),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
        }
    }

    /// The data directory when nobody names one; `None` only for a user without a home.
    pub fn default_data_dir(&self) -> Option<PathBuf> {
        if let Some(dir) = &self.granary_data_dir {
            return Some(dir.clone());
        }
        if self.is_root {
            return Some(PathBuf::from(SYSTEM_DATA_DIR));
        }
        let absolute = self.xdg_data_home.as_ref().filter(|dir| dir.is_absolute());
        absolute
            .cloned()
            .or_else(|| self.home.as_ref().map(|home| home.join(".local/share")))
            .map(|base| base.join("granary"))
    }

    /// True when an ordinary user works on a machine where root has set Granary up.
    pub(crate) fn belongs_to_root(&self) -> bool {
        !self.is_root && Path::new(SYSTEM_DATA_DIR).exists()
    }
}

/// An empty variable counts as not set.
fn set(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_users_keep_their_data_apart() {
        let root = Environment { is_root: true, home: Some("/root".into()), ..Environment::default() };
        assert_eq!(root.default_data_dir(), Some("/var/lib/granary".into()));

        let user = Environment { home: Some("/home/ada".into()), ..Environment::default() };
        assert_eq!(user.default_data_dir(), Some("/home/ada/.local/share/granary".into()));

        let xdg = Environment { xdg_data_home: Some("/data/ada".into()), ..user.clone() };
        assert_eq!(xdg.default_data_dir(), Some("/data/ada/granary".into()));

        let relative = Environment { xdg_data_home: Some("data".into()), ..user };
        assert_eq!(relative.default_data_dir(), Some("/home/ada/.local/share/granary".into()));

        assert_eq!(Environment::default().default_data_dir(), None);
    }

    #[test]
    fn a_variable_moves_the_default_data_directory() {
        let env = Environment {
            is_root: true,
            granary_data_dir: Some("/srv/granary".into()),
            ..Environment::default()
        };
        assert_eq!(env.default_data_dir(), Some("/srv/granary".into()));
    }
}
