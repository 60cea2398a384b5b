//! `granary apply`: makes the API's objects as the files say, by server-side apply.
//! What others need goes first: namespaces, then definitions, which must be served before their
//! objects are sent. One object's failure does not keep the others from being applied.

use std::{collections::HashSet, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::{
    error::{CliError, Result},
    exit::Exit,
    goal::Goal,
    manifest::{self, Manifest},
    output::Output,
    selection::{ObjectRef, object_of},
    session::Session,
    waiting::{Deadline, Waiter},
};

/// Under this name the API remembers which fields were set from here.
pub const FIELD_MANAGER: &str = "granary";

/// A definition is served within a second; longer than this means it is wrong.
const DEFINITION_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// File, directory, or - for standard input; YAML or JSON, any number of objects
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Also read the directories below
    #[arg(short = 'R', long)]
    pub recursive: bool,

    /// Take over fields that another manager owns
    #[arg(long)]
    pub force_conflicts: bool,

    /// Let the server check everything but change nothing
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "server", value_name = "WHERE")]
    pub dry_run: Option<DryRun>,

    /// What to do about fields the API does not know
    #[arg(long, value_name = "HOW", default_value = "strict")]
    pub validate: Validation,
}

/// `--dry-run`: only the server knows defaults, admission and what others own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    Server,
}

/// `--validate`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Validation {
    /// Refuse the object
    Strict,
    /// Warn and drop them
    Warn,
    /// Drop them
    Ignore,
}

impl Validation {
    fn directive(self) -> &'static str {
        match self {
            Self::Strict => "Strict",
            Self::Warn => "Warn",
            Self::Ignore => "Ignore",
        }
    }
}

pub async fn run(session: &mut Session, args: &ApplyArgs, output: &mut Output) -> Result<Exit> {
    let manifests = manifest::read_all(&args.files, args.recursive)?;
    let mut apply = Apply { session, args, output, exit: Exit::Ok, new_namespaces: HashSet::new() };
    let first_other =
        manifests.iter().position(|manifest| !manifest.is_namespace() && !manifest.is_definition());
    let (basics, others) = manifests.split_at(first_other.unwrap_or(manifests.len()));
    for manifest in basics {
        apply.one(manifest).await?;
    }
    let definitions: Vec<&Manifest> = basics.iter().filter(|manifest| manifest.is_definition()).collect();
    apply.await_definitions(&definitions, others).await?;
    for manifest in others {
        if apply.is_defined_here_only(manifest, &definitions).await? {
            let line = format!(
                "{}: {} not checked: its definition is not there yet",
                manifest.place,
                manifest.kind()
            );
            apply.output.warning(line)?;
        } else {
            apply.one(manifest).await?;
        }
    }
    Ok(apply.exit)
}

struct Apply<'a> {
    session: &'a mut Session,
    args: &'a ApplyArgs,
    output: &'a mut Output,
    /// The first failure decides.
    exit: Exit,
    /// Namespaces that a dry run would have made.
    new_namespaces: HashSet<String>,
}

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Created,
    Configured,
    Unchanged,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
        }
    }
}

impl Apply<'_> {
    fn is_dry(&self) -> bool {
        self.args.dry_run.is_some()
    }

    /// Applies one object and reports on it; only a lost connection ends the whole command.
    async fn one(&mut self, manifest: &Manifest) -> Result<()> {
        match self.try_one(manifest).await {
            Ok(()) => Ok(()),
            Err(error @ (CliError::Unreachable { .. } | CliError::Output(_))) => Err(error),
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&mut self, error: &CliError) -> Result<()> {
        self.output.error(error)?;
        if self.exit == Exit::Ok {
            self.exit = error.exit();
        }
        Ok(())
    }

    async fn try_one(&mut self, manifest: &Manifest) -> Result<()> {
        let object = object_of(self.session, manifest).await?;
        if self.is_dry() && object.namespace.as_ref().is_some_and(|name| self.new_namespaces.contains(name)) {
            let line = format!("{object} not checked: its namespace is not there yet");
            return Ok(self.output.warning(line)?);
        }
        let outcome = self.send(&object, manifest).await?;
        if self.is_dry() && outcome == Outcome::Created && manifest.is_namespace() {
            self.new_namespaces.insert(object.name.clone());
        }
        let note = if self.is_dry() { " (server dry run)" } else { "" };
        Ok(self.output.line(format_args!("{object} {}{note}", outcome.word()))?)
    }

    async fn send(&mut self, object: &ObjectRef, manifest: &Manifest) -> Result<Outcome> {
        let before = match self.session.get(&object.address()).await {
            Ok(before) => Some(before),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let address = object
            .address()
            .with("fieldManager", FIELD_MANAGER)
            .with("force", if self.args.force_conflicts { "true" } else { "false" })
            .with("fieldValidation", self.args.validate.directive())
            .with_some("dryRun", self.args.dry_run.map(|_| "All"));
        let reply = self
            .session
            .send(address.apply(&to_send(manifest, object))?)
            .await
            .map_err(|error| named(object, error))?;
        for warning in &reply.warnings {
            self.output.warning(warning)?;
        }
        Ok(match before {
            None => Outcome::Created,
            Some(_) if reply.created => Outcome::Created,
            Some(before) if is_same(&before, &reply.body) => Outcome::Unchanged,
            Some(_) => Outcome::Configured,
        })
    }

    /// Waits until the definitions that later objects need are served.
    async fn await_definitions(&mut self, definitions: &[&Manifest], others: &[Manifest]) -> Result<()> {
        if self.is_dry() {
            return Ok(());
        }
        let needed =
            definitions.iter().filter(|definition| others.iter().any(|other| defines(definition, other)));
        let goal = Goal::Condition { name: "Established".into(), status: "True".into() };
        let deadline = Deadline::after(DEFINITION_TIMEOUT);
        let mut any = false;
        for definition in needed {
            any = true;
            let object = object_of(self.session, definition).await?;
            let waiter = Waiter { session: self.session, object: &object, goal: &goal, uid: None };
            match waiter.reach(deadline).await {
                Ok(()) => {}
                // It was refused above; its objects will say that their kind is missing.
                Err(CliError::NotFound { .. }) => {}
                Err(error @ CliError::Timeout { .. }) => self.failed(&error)?,
                Err(error) => return Err(error),
            }
        }
        if any { self.await_discovery(definitions, others, deadline).await } else { Ok(()) }
    }

    /// The list of kinds follows an established definition with a small delay.
    async fn await_discovery(
        &mut self,
        definitions: &[&Manifest],
        others: &[Manifest],
        deadline: Deadline,
    ) -> Result<()> {
        let mut pause = Duration::from_millis(50);
        loop {
            self.session.refresh_kinds().await?;
            let kinds = self.session.kinds().await?;
            let missing = others.iter().any(|other| {
                definitions.iter().any(|definition| defines(definition, other))
                    && kinds.of_object(other.api_version(), other.kind()).is_none()
            });
            if !missing || pause > Duration::from_secs(2) || deadline.is_over() {
                return Ok(());
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }

    /// In a dry run a definition of the same files is not served, so its objects cannot be checked.
    async fn is_defined_here_only(&self, manifest: &Manifest, definitions: &[&Manifest]) -> Result<bool> {
        let kinds = self.session.kinds().await?;
        Ok(self.is_dry()
            && kinds.of_object(manifest.api_version(), manifest.kind()).is_none()
            && definitions.iter().any(|definition| defines(definition, manifest)))
    }
}

/// The object as it goes to the server: with its namespace, without what the server refuses.
fn to_send(manifest: &Manifest, object: &ObjectRef) -> Value {
    let mut value = manifest.object.clone();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        if let Some(namespace) = &object.namespace {
            metadata.insert("namespace".into(), namespace.as_str().into());
        }
        // A file that was saved from `get -o yaml` carries these.
        metadata.remove("managedFields");
        metadata.remove("resourceVersion");
        metadata.remove("uid");
        metadata.remove("creationTimestamp");
    }
    value
}

/// Says which object a refusal is about, if the refusal itself does not.
fn named(object: &ObjectRef, error: CliError) -> CliError {
    match error {
        CliError::Api { origin, mut status } if !status.message.contains(&object.name) => {
            status.message = format!("{object}: {}", status.message);
            CliError::Api { origin, status }
        }
        other => other,
    }
}

/// Compares what people care about. An apply that only notes who owns which field gives the object
/// a new version, and a dry run gives it none.
fn is_same(before: &Value, after: &Value) -> bool {
    let lasting = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
            metadata.remove("resourceVersion");
        }
        object
    };
    lasting(before) == lasting(after)
}

fn defines(definition: &Manifest, object: &Manifest) -> bool {
    let spec = &definition.object["spec"];
    let group = object.api_version().split_once('/').map_or("", |(group, _)| group);
    spec["group"] == group && spec["names"]["kind"] == object.kind()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::kind;
    use serde_json::json;

    fn manifest(object: Value) -> Manifest {
        Manifest { object, place: "f.yaml".into() }
    }

    #[test]
    fn a_definition_knows_its_objects() {
        let definition = manifest(
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "names": {"kind": "Widget"}}}),
        );
        assert!(defines(&definition, &manifest(json!({"apiVersion": "example.com/v2", "kind": "Widget"}))));
        assert!(!defines(&definition, &manifest(json!({"apiVersion": "example.com/v2", "kind": "Gadget"}))));
        assert!(!defines(&definition, &manifest(json!({"apiVersion": "v1", "kind": "Widget"}))));
    }

    #[test]
    fn a_file_saved_from_the_api_can_be_applied_again() {
        let saved = manifest(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}, "metadata": {
            "name": "c", "uid": "u", "resourceVersion": "7", "creationTimestamp": "x", "managedFields": []}}),
        );
        let object = ObjectRef {
            kind: kind("", "v1", "ConfigMap", "configmaps", &[]),
            namespace: Some("lab".into()),
            name: "c".into(),
        };
        assert_eq!(
            to_send(&saved, &object),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}, "metadata": {"name": "c", "namespace": "lab"}})
        );
    }

    #[test]
    fn only_a_real_difference_counts_as_configured() {
        let before = json!({"metadata": {"resourceVersion": "7", "managedFields": [{"time": "1"}]}, "data": {"a": "b"}});
        let mut after = before.clone();
        after["metadata"] = json!({"resourceVersion": "8", "managedFields": [{"time": "2"}]});
        assert!(is_same(&before, &after), "only the bookkeeping differs");
        after["data"]["a"] = json!("c");
        assert!(!is_same(&before, &after));
    }
}
