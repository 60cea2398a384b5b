//! What a client wants to run, checked before anything is done about it.

use serde::{Deserialize, Serialize};

use crate::Refusal;

/// A volume with ten times as many snapshots and replicas as anybody has needs less.
const MAX_ARGUMENTS: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    pub name: String,
    pub binary: String,
    pub args: Vec<String>,
    pub port_count: u16,
    pub port_args: Vec<String>,
}

impl Spec {
    pub fn check(&self) -> Result<(), Refusal> {
        check_name("process", &self.name)?;
        let invalid = |message: String| Err(Refusal::Invalid(format!("process {}: {message}", self.name)));
        if self.binary.is_empty() {
            return invalid("the binary is missing".into());
        }
        if self.port_args.len() > usize::from(self.port_count) {
            return invalid(format!(
                "{} port arguments, but only {} ports",
                self.port_args.len(),
                self.port_count
            ));
        }
        if self.args.len() > MAX_ARGUMENTS {
            return invalid(format!("{} arguments are more than {MAX_ARGUMENTS}", self.args.len()));
        }
        let texts = self.args.iter().chain(&self.port_args).chain([&self.binary]);
        if texts.into_iter().any(|text| text.contains('\0')) {
            return invalid("a zero byte cannot be in an argument".into());
        }
        Ok(())
    }

    /// The arguments with their ports: each port argument is continued with a port and split at its commas.
    pub fn arguments(&self, ports: impl Iterator<Item = u16>) -> Vec<String> {
        let with_ports = self.port_args.iter().zip(ports).flat_map(|(argument, port)| {
            let joined = format!("{argument}{port}");
            joined.split(',').map(str::to_owned).collect::<Vec<_>>()
        });
        self.args.iter().cloned().chain(with_ports).collect()
    }
}

/// For names that become part of a path.
pub fn check_name(what: &str, name: &str) -> Result<(), Refusal> {
    granary_block::name::check(name)
        .map_err(|reason| Refusal::Invalid(format!("{what} name {name:?}: {reason}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Spec {
        Spec {
            name: "e1".into(),
            binary: "granary".into(),
            args: vec!["engine".into()],
            port_count: 2,
            port_args: vec!["--listen,:".into(), "--data,localhost:".into()],
        }
    }

    #[test]
    fn ports_are_joined_and_split() {
        assert_eq!(
            spec().arguments(10_000..10_002),
            ["engine", "--listen", ":10000", "--data", "localhost:10001"]
        );
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        spec().check().unwrap();
        let wrong: [fn(&mut Spec); 8] = [
            |spec| spec.name.clear(),
            |spec| spec.name = "../e1".into(),
            |spec| spec.name = ".hidden".into(),
            |spec| spec.name = "a".repeat(201),
            |spec| spec.binary.clear(),
            |spec| spec.port_count = 1,
            |spec| spec.args = vec!["a\0b".into()],
            |spec| spec.args = vec!["x".into(); 1025],
        ];
        for spoil in wrong {
            let mut spec = spec();
            spoil(&mut spec);
            assert!(matches!(spec.check(), Err(Refusal::Invalid(_))), "{spec:?}");
        }
    }
}
