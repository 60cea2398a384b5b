//! The commands: what each takes, and which file runs it. Nothing is decided here.

pub mod apply;
pub mod delete;
pub mod describe;
pub mod events;
pub mod get;
pub mod kinds;
pub mod status;
mod status_text;
pub mod version;
pub mod wait;
mod watch;

use clap::Subcommand;

use crate::{
    connection::ConnectionArgs, environment::Environment, error::Result, exit::Exit, output::Output,
    session::Session,
};

/// What a user can ask of the API. The program mounts these beside its own commands.
#[derive(Debug, Subcommand)]
#[command(about = None, long_about = None)]
pub enum Command {
    /// Show objects
    Get(get::GetArgs),
    /// Show all about an object, with its events
    Describe(describe::DescribeArgs),
    /// Make objects as files say
    Apply(apply::ApplyArgs),
    /// Delete objects
    Delete(delete::DeleteArgs),
    /// Wait until objects are as wanted
    Wait(wait::WaitArgs),
    /// Show what happened
    Events(events::EventsArgs),
    /// Say whether all is well and, if not, what to do
    Status(status::StatusArgs),
    /// List the kinds of objects there are
    #[command(visible_alias = "api-resources")]
    Kinds(kinds::KindsArgs),
    /// Show the versions of this program and of the API
    Version(version::VersionArgs),
}

/// Runs a command against the API that the flags and the surroundings lead to.
///
/// # Errors
/// What went wrong, for [`Output::error`]; its [`CliError::exit`](crate::CliError::exit) is the exit code.
pub async fn run(
    command: &Command,
    connection: &ConnectionArgs,
    env: &Environment,
    output: &mut Output,
) -> Result<Exit> {
    if let Command::Version(args) = command
        && args.client
    {
        version::show(args.output, None, output)?;
        output.flush()?;
        return Ok(Exit::Ok);
    }
    match Session::open(connection, env).await {
        Ok(mut session) => run_in(command, &mut session, output).await,
        Err(error) => {
            // The program's own version needs no API.
            if let Command::Version(args) = command {
                version::show(args.output, None, output)?;
            }
            Err(error)
        }
    }
}

/// Runs a command over a connection that exists already, such as one to a server in this process.
///
/// # Errors
/// As [`run`].
pub async fn run_in(command: &Command, session: &mut Session, output: &mut Output) -> Result<Exit> {
    let done = match command {
        Command::Get(args) => get::run(session, args, output).await,
        Command::Describe(args) => describe::run(session, args, output).await,
        Command::Apply(args) => apply::run(session, args, output).await,
        Command::Delete(args) => delete::run(session, args, output).await,
        Command::Wait(args) => wait::run(session, args, output).await,
        Command::Events(args) => events::run(session, args, output).await,
        Command::Status(args) => status::run(session, args, output).await,
        Command::Kinds(args) => kinds::run(session, args, output).await,
        Command::Version(args) => version::run(session, args, output).await,
    };
    output.flush()?;
    done
}

/// Runs a command with the streams of this process: all that `main` has to call.
pub async fn run_to_exit(command: &Command, connection: &ConnectionArgs) -> Exit {
    let env = Environment::of_process();
    let mut output = Output::stdio(connection.color, &env);
    match run(command, connection, &env, &mut output).await {
        Ok(exit) => exit,
        Err(error) => {
            // If nobody can be told any more, the code still says what happened.
            output.error(&error).unwrap_or_default();
            error.exit()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        connection::ColourChoice,
        exit::EXIT_CODES_HELP,
        format::{Format, ReportFormat},
        goal::Goal,
    };
    use clap::{CommandFactory, Parser};
    use delete::Cascade;
    use events::EventType;
    use std::time::Duration;

    /// Mounted as the program does it.
    #[derive(Debug, Parser)]
    #[command(name = "granary", about = "the program", after_help = EXIT_CODES_HELP)]
    struct Cli {
        #[command(flatten)]
        connection: ConnectionArgs,
        #[command(subcommand)]
        command: Command,
    }

    fn parse(line: &str) -> Cli {
        Cli::try_parse_from(line.split_whitespace()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn refused(line: &str) -> bool {
        Cli::try_parse_from(line.split_whitespace()).is_err_and(|error| error.exit_code() == 2)
    }

    #[test]
    fn the_command_line_is_sound_and_keeps_the_programs_own_words() {
        Cli::command().debug_assert();
        let help = Cli::command().render_long_help().to_string();
        assert!(help.starts_with("the program\n"), "{help}");
        assert!(help.contains("Exit codes:") && help.contains("--kubeconfig"), "{help}");
    }

    #[test]
    fn connection_flags_go_before_or_after_the_command() {
        for line in ["granary -n lab --data-dir /d get pvc", "granary get pvc --data-dir /d -n lab"] {
            let cli = parse(line);
            assert_eq!(cli.connection.namespace.as_deref(), Some("lab"));
            assert_eq!(cli.connection.data_dir.as_deref(), Some("/d".as_ref()));
            assert_eq!(cli.connection.color, ColourChoice::Auto);
        }
        assert_eq!(parse("granary status --color never").connection.color, ColourChoice::Never);
    }

    #[test]
    fn get_takes_what_kubectl_users_type() {
        let Command::Get(args) =
            parse("granary get po,pvc -A -l app=db --field-selector a=b -o wide --no-headers").command
        else {
            panic!("not get")
        };
        assert_eq!(args.what, ["po,pvc"]);
        assert!(args.all_namespaces && args.no_headers && !args.watch);
        assert_eq!((args.labels.as_deref(), args.fields.as_deref()), (Some("app=db"), Some("a=b")));
        assert_eq!((args.output, args.chunk_size), (Some(Format::Wide), 500));

        let Command::Get(args) = parse("granary get pvc -w --output-watch-events -ojson").command else {
            panic!("not get")
        };
        assert!(args.watch && args.output_watch_events);
        assert_eq!(args.output, Some(Format::Json));

        assert!(refused("granary get"));
        assert!(refused("granary get pvc -o table"));
        assert!(refused("granary get pvc -w --sort-by a"));
        assert!(refused("granary get pvc --output-watch-events"));
        assert!(refused("granary get pvc --sort-by ..."));
    }

    #[test]
    fn delete_waits_unless_told_otherwise() {
        let delete = |line: &str| match parse(line).command {
            Command::Delete(args) => args,
            other => panic!("{other:?}"),
        };
        assert!(delete("granary delete pvc a").waits());
        assert!(delete("granary delete pvc a --wait").waits());
        assert!(!delete("granary delete pvc a --no-wait").waits());
        assert!(!delete("granary delete pvc a --wait=false").waits());
        assert!(!delete("granary delete pvc a --dry-run=server").waits());
        let args = delete("granary delete -f a.yaml -f - --cascade orphan --grace-period 0 --timeout 1m");
        assert_eq!((args.cascade, args.grace_period), (Cascade::Orphan, Some(0)));
        assert_eq!((args.files.len(), args.timeout), (2, Some(Duration::from_secs(60))));
        assert!(refused("granary delete pvc a --cascade sideways"));
        assert!(refused("granary delete pvc a --dry-run=client"));
        assert!(refused("granary delete pvc a -R"));
    }

    #[test]
    fn apply_wait_and_events_understand_their_own_options() {
        let Command::Apply(args) = parse("granary apply -f a -f b --force-conflicts --dry-run").command
        else {
            panic!("not apply")
        };
        assert!(args.files.len() == 2 && args.force_conflicts && args.dry_run.is_some());
        assert!(refused("granary apply"));

        let Command::Wait(args) =
            parse("granary wait pvc/a --for=condition=Ready=false --timeout 1h30m").command
        else {
            panic!("not wait")
        };
        assert_eq!(args.goal, Goal::Condition { name: "Ready".into(), status: "false".into() });
        assert_eq!(args.timeout, Duration::from_secs(5400));
        assert!(refused("granary wait pvc/a"));
        assert!(refused("granary wait pvc/a --for=Ready"));
        assert!(refused("granary wait pvc/a --for=delete --timeout soon"));

        let Command::Events(args) =
            parse("granary events --for pvc/a --types Warning,Normal -w -o yaml").command
        else {
            panic!("not events")
        };
        assert_eq!(args.types, [EventType::Warning, EventType::Normal]);
        assert_eq!((args.watch, args.output), (true, Some(ReportFormat::Yaml)));
        assert!(refused("granary events --types Error"));
    }

    #[test]
    fn kinds_answers_to_the_name_that_kubectl_uses() {
        let Command::Kinds(args) = parse("granary api-resources --namespaced=false").command else {
            panic!("not kinds")
        };
        assert_eq!(args.namespaced, Some(false));
        let Command::Kinds(args) = parse("granary kinds --namespaced").command else { panic!("not kinds") };
        assert_eq!(args.namespaced, Some(true));
    }
}
