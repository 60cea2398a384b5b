//! The command line that managers of Longhorn use for engines (`controller`) and replicas, in our words. What has no
//! meaning here is left out; what nobody knows is refused, because it might matter.

use std::collections::VecDeque;
use std::path::Path;

use crate::{Refusal, frontend};

/// The file name of the binary that takes such arguments. Its path tells engine images apart, and runs nothing.
pub const BINARY: &str = "longhorn";

/// Flags with a value that mean nothing to us: files are not copied over HTTP, and names are those of the processes.
const IGNORED_VALUES: [&str; 8] = [
    "engine-instance-name",
    "replica-instance-name",
    "file-sync-http-client-timeout",
    "data-server-protocol",
    "rebuild-sync-concurrent-limit",
    "sync-agent-port-count",
    "snapshot-max-size",
    "url",
];

/// Likewise: there is no revision counter, and a volume decides by itself who has the truth. `upgrade` is what
/// replacing a process means.
const IGNORED: [&str; 7] = [
    "disableRevCounter",
    "salvageRequested",
    "upgrade",
    "debug",
    "unmap-mark-snap-chain-removed",
    "unmap-mark-disk-chain-removed",
    "isUpgrade",
];

#[derive(Default)]
struct Given {
    command: String,
    positional: Option<String>,
    volume: Option<String>,
    frontend: Option<String>,
    size: Option<String>,
    current_size: Option<String>,
    replica_timeout: Option<String>,
    listen: Option<String>,
    backing: Option<String>,
    max_snapshots: Option<String>,
    replicas: Vec<String>,
}

pub fn translate(args: &[String]) -> Result<Vec<String>, Refusal> {
    let given = parse(args)?;
    match given.command.as_str() {
        "controller" => engine(&given),
        "replica" => replica(&given),
        other => Err(Refusal::Invalid(format!(
            "`{BINARY} {other}` is not run here; use `controller` or `replica`"
        ))),
    }
}

fn parse(args: &[String]) -> Result<Given, Refusal> {
    let mut given = Given::default();
    let mut rest: VecDeque<&str> = args.iter().map(String::as_str).collect();
    while let Some(word) = rest.pop_front() {
        let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
            given.word(word)?;
            continue;
        };
        let (flag, attached) = flag.split_once('=').map_or((flag, None), |(flag, value)| (flag, Some(value)));
        if IGNORED.contains(&flag) {
            continue;
        }
        let value = attached.or_else(|| rest.pop_front());
        let value = value.ok_or_else(|| Refusal::Invalid(format!("--{flag} has no value")))?;
        given.flag(flag, value)?;
    }
    Ok(given)
}

impl Given {
    fn word(&mut self, word: &str) -> Result<(), Refusal> {
        if self.command.is_empty() {
            word.clone_into(&mut self.command);
        } else if self.positional.is_none() {
            self.positional = Some(word.to_owned());
        } else {
            return Err(Refusal::Invalid(format!("`{} {word}`: one argument too many", self.command)));
        }
        Ok(())
    }

    fn flag(&mut self, flag: &str, value: &str) -> Result<(), Refusal> {
        let place = match flag {
            "replica" => {
                self.replicas.push(value.to_owned());
                return Ok(());
            }
            "volume-name" => &mut self.volume,
            "frontend" => &mut self.frontend,
            "size" => &mut self.size,
            "current-size" => &mut self.current_size,
            "engine-replica-timeout" => &mut self.replica_timeout,
            "listen" => &mut self.listen,
            "backing-file" => &mut self.backing,
            "snapshot-max-count" => &mut self.max_snapshots,
            ignored if IGNORED_VALUES.contains(&ignored) => return Ok(()),
            unknown => {
                return Err(Refusal::Invalid(format!("--{unknown} is not understood; nothing is started")));
            }
        };
        *place = Some(value.to_owned());
        Ok(())
    }

    fn positional(&self, what: &str) -> Result<&str, Refusal> {
        self.positional.as_deref().ok_or_else(|| Refusal::Invalid(format!("`{}` needs {what}", self.command)))
    }
}

fn engine(given: &Given) -> Result<Vec<String>, Refusal> {
    let volume = given.positional("the volume's name")?;
    let mut args = vec!["engine".to_owned(), "--volume".to_owned(), volume.to_owned()];
    let mut add = |flag: &str, value: &str| args.extend([flag.to_owned(), value.to_owned()]);
    // While an expansion is under way, the replicas know best.
    let settled = given.current_size.is_none() || given.current_size == given.size;
    if let Some(size) = given.size.as_deref().filter(|_| settled) {
        add("--size", size);
    }
    if let Some(seconds) = &given.replica_timeout {
        add("--replica-timeout", seconds);
    }
    if let Some(count) = given.max_snapshots.as_deref().filter(|count| *count != "0") {
        add("--max-snapshots", count);
    }
    if given.replicas.is_empty() {
        return Err(Refusal::Invalid(format!("the engine of volume {volume} needs at least one --replica")));
    }
    for replica in &given.replicas {
        add("--replica", replica);
    }
    if let Some(spec) = frontend::parse(given.frontend.as_deref().unwrap_or_default(), volume)? {
        add("--frontend", &spec.to_string());
    }
    Ok(args)
}

fn replica(given: &Given) -> Result<Vec<String>, Refusal> {
    let dir = given.positional("its directory")?;
    let listen = given.listen.as_deref().ok_or_else(|| {
        Refusal::Invalid(format!(
            "the replica in {dir} needs --listen; give it a port and `--listen,0.0.0.0:`"
        ))
    })?;
    let listen = if listen.starts_with(':') { format!("0.0.0.0{listen}") } else { listen.to_owned() };
    let mut args =
        vec!["replica".to_owned(), "--dir".to_owned(), dir.to_owned(), "--listen".to_owned(), listen];
    let mut add = |flag: &str, value: &str| args.extend([flag.to_owned(), value.to_owned()]);
    // One that is there already has the size it has grown to.
    if let Some(size) = given.size.as_deref().filter(|_| !Path::new(dir).join("volume.json").exists()) {
        add("--size", size);
    }
    for (flag, value) in [
        ("--volume", &given.volume),
        ("--backing", &given.backing),
        ("--max-snapshots", &given.max_snapshots),
    ] {
        if let Some(value) = value.as_deref().filter(|value| *value != "0") {
            add(flag, value);
        }
    }
    Ok(args)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> Result<String, Refusal> {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        translate(&words).map(|args| args.join(" "))
    }

    #[test]
    fn the_lines_that_managers_send() {
        for (theirs, ours) in [
            (
                "--engine-instance-name v-e-0 controller v --frontend tgt-blockdev --size 1048576 --current-size 1048576 \
                 --disableRevCounter --salvageRequested --engine-replica-timeout 8 --file-sync-http-client-timeout 30 \
                 --snapshot-max-count 250 --snapshot-max-size 0 --rebuild-sync-concurrent-limit 1 \
                 --replica tcp://10.0.0.1:10000 --replica tcp://10.0.0.2:10010 --listen 0.0.0.0:10020",
                "engine --volume v --size 1048576 --replica-timeout 8 --max-snapshots 250 \
                 --replica tcp://10.0.0.1:10000 --replica tcp://10.0.0.2:10010 --frontend device:///dev/longhorn/v",
            ),
            (
                "controller v --size 2097152 --current-size 1048576 --replica tcp://h:1 --upgrade",
                "engine --volume v --replica tcp://h:1",
            ),
            (
                "--volume-name v replica /data/replicas/v-1 --size 1048576 --disableRevCounter \
                 --replica-instance-name v-r-1 --snapshot-max-count 250 --snapshot-max-size 0 \
                 --sync-agent-port-count 7 --listen :10000",
                "replica --dir /data/replicas/v-1 --listen 0.0.0.0:10000 --size 1048576 --volume v --max-snapshots 250",
            ),
            (
                "--volume-name=v replica /data/v-1 --backing-file=/images/base --listen=0.0.0.0:7",
                "replica --dir /data/v-1 --listen 0.0.0.0:7 --volume v --backing /images/base",
            ),
        ] {
            assert_eq!(translated(theirs).as_deref(), Ok(ours), "{theirs}");
        }
    }

    #[test]
    fn what_is_not_understood_starts_nothing() {
        for line in [
            "",
            "version",
            "controller",
            "controller v",
            "controller v w --replica h:1",
            "controller v --replica",
            "controller v --replica h:1 --make-it-so 1",
            "replica /data/v-1 --encrypted true --listen :1",
            "replica /data/v-1 --size 1048576",
            "controller v --replica h:1 --frontend carrier-pigeon",
        ] {
            assert!(matches!(translated(line), Err(Refusal::Invalid(_))), "{line}: {:?}", translated(line));
        }
        let iscsi = translated("controller v --replica h:1 --frontend tgt-iscsi");
        assert!(matches!(iscsi, Err(Refusal::Unimplemented(_))), "{iscsi:?}");
    }

    #[test]
    fn a_replica_that_exists_keeps_its_size() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("volume.json"), "{}").unwrap();
        let line = format!("replica {} --size 1 --listen :7", home.path().display());
        assert!(!translated(&line).unwrap().contains("--size"));
    }
}
