//! `granary delete`: deletes objects by name, selector or file and, unless told otherwise, waits
//! until they are really gone. It asks no questions; a bare kind is refused, not taken as "all".

use std::{path::PathBuf, time::Duration};

use clap::{ArgAction, Args, ValueEnum};
use serde_json::{Map, Value, json};

use crate::{
    commands::apply::DryRun,
    duration,
    error::{CliError, Result},
    exit::Exit,
    goal::Goal,
    output::Output,
    selection::{ObjectRef, Selection},
    session::{Filter, Session},
    waiting::{Deadline, Waiter},
};

/// Most objects are gone by then.
const QUIET_WAIT: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// KIND NAME… or KIND/NAME…; KIND alone with -l or --all
    #[arg(value_name = "KIND")]
    pub what: Vec<String>,

    /// The objects of a file, a directory, or - for standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Also read the directories below
    #[arg(short = 'R', long, requires = "files")]
    pub recursive: bool,

    /// Objects with these labels
    #[arg(short = 'l', long = "selector", value_name = "LABELS")]
    pub labels: Option<String>,

    /// Objects with these field values
    #[arg(long = "field-selector", value_name = "FIELDS")]
    pub fields: Option<String>,

    /// All objects of the kind
    #[arg(long)]
    pub all: bool,

    /// In all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,

    /// What happens to objects that belong to it
    #[arg(long, value_name = "HOW", default_value = "background")]
    pub cascade: Cascade,

    /// Wait until the objects are gone
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        default_value_t = true, action = ArgAction::Set)]
    pub wait: bool,

    /// Return as soon as the API has accepted the deletion
    #[arg(long, conflicts_with = "wait")]
    pub no_wait: bool,

    /// How long to wait for all of them; without it as long as it takes
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub timeout: Option<Duration>,

    /// An object that does not exist is no error
    #[arg(long)]
    pub ignore_not_found: bool,

    /// Seconds a process gets to end by itself
    #[arg(long, value_name = "SECONDS")]
    pub grace_period: Option<u32>,

    /// Let the server check everything but delete nothing
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "server", value_name = "WHERE")]
    pub dry_run: Option<DryRun>,
}

/// `--cascade`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Cascade {
    /// They are deleted after it
    Background,
    /// They are deleted before it
    Foreground,
    /// They stay
    Orphan,
}

impl DeleteArgs {
    pub(super) fn waits(&self) -> bool {
        self.wait && !self.no_wait && self.dry_run.is_none()
    }

    fn selection(&self) -> Selection {
        Selection {
            words: self.what.clone(),
            files: self.files.clone(),
            recursive: self.recursive,
            filter: Filter { labels: self.labels.clone(), fields: self.fields.clone() },
            all: self.all,
            all_namespaces: self.all_namespaces,
        }
    }

    fn options(&self) -> Value {
        let policy = match self.cascade {
            Cascade::Background => "Background",
            Cascade::Foreground => "Foreground",
            Cascade::Orphan => "Orphan",
        };
        let mut options = Map::new();
        options.insert("apiVersion".into(), "v1".into());
        options.insert("kind".into(), "DeleteOptions".into());
        options.insert("propagationPolicy".into(), policy.into());
        if let Some(seconds) = self.grace_period {
            options.insert("gracePeriodSeconds".into(), seconds.into());
        }
        if self.dry_run.is_some() {
            options.insert("dryRun".into(), json!(["All"]));
        }
        Value::Object(options)
    }
}

pub async fn run(session: &Session, args: &DeleteArgs, output: &mut Output) -> Result<Exit> {
    let mut objects = args.selection().resolve(session).await?;
    if !args.files.is_empty() {
        // What was applied last goes first: objects before their definitions and namespaces.
        objects.reverse();
    }
    if objects.is_empty() {
        output.remark("No resources found.")?;
        return Ok(Exit::Ok);
    }
    let options = args.options();
    let mut exit = Exit::Ok;
    let mut going: Vec<(ObjectRef, Option<String>)> = Vec::new();
    for object in objects {
        match delete(session, object, &options, output).await {
            Ok((object, uid)) => {
                let note = if args.dry_run.is_some() { " (server dry run)" } else { "" };
                output.line(format_args!("{object} deleted{note}"))?;
                going.push((object, uid));
            }
            Err(error) if error.is_not_found() && args.ignore_not_found => {}
            Err(error @ (CliError::Unreachable { .. } | CliError::Output(_))) => return Err(error),
            Err(error) => {
                output.error(&error)?;
                exit = if exit == Exit::Ok { error.exit() } else { exit };
            }
        }
    }
    if !args.waits() {
        return Ok(exit);
    }
    output.flush()?;
    let deadline = Deadline::after(args.timeout.unwrap_or(Duration::MAX));
    for (object, uid) in &going {
        let waiter = Waiter { session, object, goal: &Goal::Delete, uid: uid.as_deref() };
        // A quiet terminal is fine for a moment; then say what the wait is about.
        if let Err(CliError::Timeout { seen, .. }) = waiter.reach(deadline.capped(QUIET_WAIT)).await {
            if !deadline.is_over() {
                output.remark(format_args!("waiting for {object}: {}", seen.unwrap_or_default()))?;
            }
            waiter.reach(deadline).await?;
        }
    }
    Ok(exit)
}

async fn delete(
    session: &Session,
    object: Result<ObjectRef>,
    options: &Value,
    output: &mut Output,
) -> Result<(ObjectRef, Option<String>)> {
    let object = object?;
    let reply = match session.send(object.address().delete(options)?).await {
        Err(error) if error.is_not_found() => return Err(object.not_found(session)),
        other => other?,
    };
    for warning in &reply.warnings {
        output.warning(warning)?;
    }
    let uid = uid_of(&reply.body);
    Ok((object, uid))
}

/// The answer is the object if it lives on for a while, else a Status that says which one it was.
fn uid_of(answer: &Value) -> Option<String> {
    let uid = answer["metadata"]["uid"].as_str().or_else(|| answer["details"]["uid"].as_str());
    uid.filter(|uid| !uid.is_empty()).map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deleted_incarnation_is_known_from_either_answer() {
        assert_eq!(uid_of(&json!({"kind": "Pod", "metadata": {"uid": "a"}})).as_deref(), Some("a"));
        assert_eq!(
            uid_of(&json!({"kind": "Status", "metadata": {}, "details": {"uid": "b"}})).as_deref(),
            Some("b")
        );
        assert_eq!(uid_of(&json!({"kind": "Status", "status": "Success"})), None);
    }
}
