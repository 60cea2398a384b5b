//! `granary wait`: returns when all the objects have reached a goal, or says which has not and why.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use crate::{
    duration,
    error::{CliError, Result},
    exit::Exit,
    goal::Goal,
    output::Output,
    selection::{ObjectRef, Selection},
    session::{Filter, Session},
    waiting::{Deadline, Waiter},
};

#[derive(Debug, Args)]
pub struct WaitArgs {
    /// KIND NAME… or KIND/NAME…; KIND alone with -l or --all
    #[arg(value_name = "KIND")]
    pub what: Vec<String>,

    /// condition=NAME[=STATUS], delete, create, or PATH=VALUE such as status.phase=Bound
    #[arg(long = "for", value_name = "GOAL")]
    pub goal: Goal,

    /// How long to wait for all of them (0: look once)
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration::parse)]
    pub timeout: Duration,

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
}

pub async fn run(session: &Session, args: &WaitArgs, output: &mut Output) -> Result<Exit> {
    let deadline = Deadline::after(args.timeout);
    let selection = Selection {
        words: args.what.clone(),
        files: args.files.clone(),
        recursive: args.recursive,
        filter: Filter { labels: args.labels.clone(), fields: args.fields.clone() },
        all: args.all,
        all_namespaces: args.all_namespaces,
    };
    let objects = selection.resolve(session).await?;
    if objects.is_empty() && args.goal != Goal::Delete {
        return Err(CliError::NotFound { object: "an object to wait for was".into(), hint: None });
    }
    let mut exit = Exit::Ok;
    for object in objects {
        match reach(session, object, &args.goal, deadline).await {
            Ok(object) => output.line(format_args!("{object} {}", args.goal.reached()))?,
            // The others may be there; whoever reads this wants to know which is missing.
            Err(error @ (CliError::Timeout { .. } | CliError::NotFound { .. })) => {
                output.error(&error)?;
                exit = if exit == Exit::Ok { error.exit() } else { exit };
            }
            Err(error) => return Err(error),
        }
        output.flush()?;
    }
    Ok(exit)
}

async fn reach(
    session: &Session,
    object: Result<ObjectRef>,
    goal: &Goal,
    deadline: Deadline,
) -> Result<ObjectRef> {
    let object = object?;
    Waiter { session, object: &object, goal, uid: None }.reach(deadline).await?;
    Ok(object)
}
