//! From what a client wants to run to the command that is run: whose program it may be, what of ours it is, and what
//! only the instance manager knows (keys, control sockets).

use std::path::{Path, PathBuf};

use granary_block::wire::address::Address;
use granary_frontend::FrontendSpec;
use serde::{Deserialize, Serialize};

use super::foreign;
use super::keys;
use super::settings::Settings;
use super::spec::{Spec, check_name};
use crate::Refusal;

/// Our own program, wherever it is.
const OWN: &str = "granary";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub role: Role,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    Engine {
        volume: String,
        control: Address,
    },
    Replica {
        volume: Option<String>,
    },
    /// Somebody else's program, known only by its ports.
    Other,
}

impl Plan {
    /// `id` is unique to this run of the process.
    pub fn make(
        settings: &Settings,
        spec: &Spec,
        ports: impl Iterator<Item = u16>,
        id: &str,
    ) -> Result<Self, Refusal> {
        let args = spec.arguments(ports);
        let named = Path::new(&spec.binary).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let (program, args) = if named == foreign::BINARY {
            (settings.program.clone(), foreign::translate(&args)?)
        } else {
            (allowed(settings, &spec.binary)?, args)
        };
        match args.first().map(String::as_str) {
            Some("engine") => engine(settings, program, args, id),
            Some("replica") => replica(settings, program, args),
            _ if program == settings.program => Err(Refusal::Invalid(format!(
                "process {}: of granary, only `engine` and `replica` are run here",
                spec.name
            ))),
            _ => Ok(Self { program, args, role: Role::Other }),
        }
    }

    pub fn volume(&self) -> Option<&str> {
        match &self.role {
            Role::Engine { volume, .. } => Some(volume),
            Role::Replica { volume } => volume.as_deref(),
            Role::Other => None,
        }
    }

    /// Where an engine's volume is to be reached, if it is to be at all.
    pub fn frontends(&self) -> Vec<FrontendSpec> {
        flag_values(&self.args, "--frontend").filter_map(|text| text.parse().ok()).collect()
    }

    /// The same engine, but it goes on where the one behind `old` is.
    pub fn taking_over(mut self, old: &Address, frontends: &[String]) -> Self {
        self.args = without_flag(self.args, "--frontend");
        self.args.extend(frontends.iter().flat_map(|spec| ["--frontend".to_owned(), spec.clone()]));
        self.args.extend(["--takeover".into(), old.to_string()]);
        self
    }
}

fn engine(settings: &Settings, program: PathBuf, mut args: Vec<String>, id: &str) -> Result<Plan, Refusal> {
    let volume =
        flag_value(&args, "--volume").ok_or_else(|| Refusal::Invalid("an engine needs --volume".into()))?;
    check_name("volume", &volume)?;
    let control = match flag_value(&args, "--control") {
        Some(text) => text.parse().map_err(|error| Refusal::Invalid(format!("--control: {error}")))?,
        None => {
            let control = Address::Unix(settings.control_socket(id));
            args.extend(["--control".into(), control.to_string()]);
            control
        }
    };
    add_key(settings, &mut args, &volume)?;
    Ok(Plan { program, args, role: Role::Engine { volume, control } })
}

fn replica(settings: &Settings, program: PathBuf, mut args: Vec<String>) -> Result<Plan, Refusal> {
    let volume = flag_value(&args, "--volume");
    if let Some(volume) = &volume {
        check_name("volume", volume)?;
    }
    let dir = flag_value(&args, "--dir").ok_or_else(|| Refusal::Invalid("a replica needs --dir".into()))?;
    if !Path::new(&dir).is_absolute() || dir.split('/').any(|part| part == "..") {
        return Err(Refusal::Invalid(format!(
            "replica directory {dir:?}: name it from the root on, without '..'"
        )));
    }
    match &volume {
        Some(volume) => add_key(settings, &mut args, volume)?,
        None if flag_value(&args, "--key-file").is_none() => {
            return Err(Refusal::Invalid(
                "a replica needs --volume or --key-file: whose key would it have?".into(),
            ));
        }
        None => {}
    }
    Ok(Plan { program, args, role: Role::Replica { volume } })
}

fn add_key(settings: &Settings, args: &mut Vec<String>, volume: &str) -> Result<(), Refusal> {
    if flag_value(args, "--key-file").is_none() {
        let key = keys::path(&settings.keys_dir, settings.create_keys, volume)?;
        args.extend(["--key-file".into(), key.display().to_string()]);
    }
    Ok(())
}

/// Whoever may ask for processes must not thereby be able to run just anything.
fn allowed(settings: &Settings, binary: &str) -> Result<PathBuf, Refusal> {
    if binary == OWN {
        return Ok(settings.program.clone());
    }
    let path = std::fs::canonicalize(binary)
        .map_err(|error| Refusal::Invalid(format!("binary {binary:?} cannot be run here: {error}")))?;
    let ours =
        path == settings.program || settings.binaries.iter().any(|directory| path.starts_with(directory));
    if ours && path.is_file() {
        return Ok(path);
    }
    Err(Refusal::Invalid(format!(
        "binary {binary:?} is neither granary nor in a directory given with --binaries; it is not run"
    )))
}

fn flag_values<'a>(args: &'a [String], flag: &'a str) -> impl Iterator<Item = &'a str> {
    let separate = args.windows(2).filter(move |pair| pair[0] == flag).map(|pair| pair[1].as_str());
    let joined = args.iter().filter_map(move |arg| arg.strip_prefix(flag)?.strip_prefix('='));
    separate.chain(joined)
}

fn flag_value(args: &[String], flag: &str) -> Option<String> {
    flag_values(args, flag).next().map(str::to_owned)
}

fn without_flag(args: Vec<String>, flag: &str) -> Vec<String> {
    let (mut kept, mut args) = (Vec::new(), args.into_iter());
    while let Some(arg) = args.next() {
        if arg == flag {
            args.next();
        } else if arg.strip_prefix(flag).is_none_or(|rest| !rest.starts_with('=')) {
            kept.push(arg);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(home: &Path) -> Settings {
        let program = std::env::current_exe().unwrap().canonicalize().unwrap();
        Settings { create_keys: true, binaries: vec![home.join("bin")], ..Settings::new(program, home) }
    }

    fn spec(binary: &str, args: &[&str]) -> Spec {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Spec { name: "p".into(), binary: binary.into(), args, port_count: 0, port_args: Vec::new() }
    }

    #[test]
    fn an_engine_gets_what_only_the_manager_knows() {
        let home = tempfile::tempdir().unwrap();
        let settings = settings(home.path());
        let own = settings.program.display().to_string();
        let plan =
            Plan::make(&settings, &spec(&own, &["engine", "--volume", "v1", "--replica", "h:1"]), 0..0, "7f")
                .unwrap();
        assert_eq!(plan.volume(), Some("v1"));
        let Role::Engine { control: Address::Unix(socket), .. } = &plan.role else { panic!("{plan:?}") };
        assert!(socket.starts_with(&settings.state_dir) && socket.display().to_string().contains("7f"));
        assert!(flag_value(&plan.args, "--key-file").unwrap().ends_with("v1.key"));
        let given = ["engine", "--volume=v1", "--control=tcp://127.0.0.1:7", "--key-file", "/k"];
        let plan = Plan::make(&settings, &spec(&own, &given), 0..0, "7f").unwrap();
        assert_eq!(plan.args, given, "what was given is not given again");
    }

    #[test]
    fn just_anything_is_not_run() {
        let home = tempfile::tempdir().unwrap();
        let settings = settings(home.path());
        let own = settings.program.display().to_string();
        for (binary, args) in [
            ("/bin/sh", &["-c", "true"][..]),
            ("/nonexistent/granary", &["engine", "--volume", "v"]),
            (&own, &["up"]),
            (&own, &["engine", "--replica", "h:1"]),
            (&own, &["engine", "--volume", "../v"]),
            (&own, &["replica", "--volume", "v", "--dir", "/data/../etc"]),
            (&own, &["replica", "--volume", "v", "--dir", "data"]),
            (&own, &["replica", "--dir", "/data"]),
        ] {
            let refused = Plan::make(&settings, &spec(binary, args), 0..0, "id");
            assert!(matches!(refused, Err(Refusal::Invalid(_))), "{binary} {args:?}: {refused:?}");
        }
        assert!(!settings.keys_dir.exists(), "and no key is made for it");
    }

    #[test]
    fn an_engine_that_takes_over_has_the_frontends_of_the_other() {
        let args =
            ["engine", "--frontend", "device", "--frontend=fuse:///x", "--size", "1"].map(str::to_owned);
        let plan = Plan { program: "g".into(), args: args.to_vec(), role: Role::Other };
        let plan = plan.taking_over(&"unix:///old".parse().unwrap(), &["fuse:///y".to_owned()]);
        assert_eq!(
            plan.args,
            ["engine", "--size", "1", "--frontend", "fuse:///y", "--takeover", "unix:///old"]
        );
    }
}
