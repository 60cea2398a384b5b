//! What is done about a process, from whether it is wanted and what its instance manager says of it.

use granary_instance::wire::process::ProcessResponse;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Running,
    Stopped,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Create,
    Delete {
        uuid: String,
    },
    /// It is there, or on its way.
    Starting,
    Running,
    Stopping,
    Stopped,
    /// It ended, and stays as it is until somebody no longer wants it.
    Failed(String),
}

/// `was_started`: this instance manager has started it before, for the same wish.
pub fn next(wanted: Wanted, process: Option<&ProcessResponse>, was_started: bool) -> Step {
    let Some(process) = process else {
        return match wanted {
            Wanted::Stopped => Step::Stopped,
            Wanted::Running if was_started => {
                Step::Failed("its instance manager no longer has it".to_owned())
            }
            Wanted::Running => Step::Create,
        };
    };
    let status = process.status.clone().unwrap_or_default();
    match (wanted, status.state.as_str()) {
        (Wanted::Stopped, "stopping") => Step::Stopping,
        (Wanted::Stopped, _) => Step::Delete { uuid: status.uuid },
        (Wanted::Running, "running") => Step::Running,
        (Wanted::Running, "starting") => Step::Starting,
        // Of the run before; it is created again when that has ended.
        (Wanted::Running, "stopping") => Step::Stopping,
        (Wanted::Running, "error") => Step::Failed(status.error_msg),
        (Wanted::Running, state) => Step::Failed(format!("it is {state}: {}", status.error_msg)),
    }
}

#[cfg(test)]
mod tests {
    use granary_instance::wire::process::ProcessStatus;

    use super::*;

    fn process(state: &str) -> ProcessResponse {
        let status = ProcessStatus {
            state: state.into(),
            error_msg: "exit status 1".into(),
            uuid: "u".into(),
            ..ProcessStatus::default()
        };
        ProcessResponse { status: Some(status), ..ProcessResponse::default() }
    }

    #[test]
    fn every_wish_meets_every_state() {
        use Wanted::{Running, Stopped};
        let delete = || Step::Delete { uuid: "u".into() };
        let gone = || Step::Failed("its instance manager no longer has it".into());
        let table = [
            (Running, None, false, Step::Create),
            (Running, None, true, gone()),
            (Running, Some("starting"), true, Step::Starting),
            (Running, Some("running"), true, Step::Running),
            (Running, Some("running"), false, Step::Running),
            (Running, Some("stopping"), true, Step::Stopping),
            (Running, Some("stopped"), true, Step::Failed("it is stopped: exit status 1".into())),
            (Running, Some("error"), true, Step::Failed("exit status 1".into())),
            (Stopped, None, true, Step::Stopped),
            (Stopped, Some("starting"), true, delete()),
            (Stopped, Some("running"), true, delete()),
            (Stopped, Some("stopping"), true, Step::Stopping),
            (Stopped, Some("stopped"), true, delete()),
            (Stopped, Some("error"), true, delete()),
        ];
        for (wanted, state, was_started, expected) in table {
            let process = state.map(process);
            assert_eq!(next(wanted, process.as_ref(), was_started), expected, "{wanted:?} {state:?}");
        }
    }
}
