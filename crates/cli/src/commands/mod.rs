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
