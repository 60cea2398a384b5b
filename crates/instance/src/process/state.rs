//! The states of a process, and the one function that leads from one to the next.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    Starting,
    Running,
    Stopping,
    Stopped,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It serves.
    Ready,
    StopAsked,
    /// It did not serve in time, or could not even be started.
    StartFailed,
    EndedWell,
    EndedBadly,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Error => "error",
        }
    }

    /// Starting ─ready→ Running ─stop→ Stopping ─ended→ Stopped; what ends badly by itself, or before it was ready, is
    /// in Error. `None`: this cannot happen in this state, and changes nothing.
    pub fn next(self, event: Event) -> Option<Self> {
        Some(match (self, event) {
            (Self::Starting, Event::Ready) => Self::Running,
            (Self::Starting, Event::StartFailed | Event::EndedWell | Event::EndedBadly) => Self::Error,
            (Self::Starting | Self::Running, Event::StopAsked) => Self::Stopping,
            (Self::Running, Event::EndedWell) => Self::Stopped,
            (Self::Running, Event::EndedBadly) => Self::Error,
            // However it ended, it was asked to.
            (Self::Stopping, Event::EndedWell | Event::EndedBadly) => Self::Stopped,
            // Words that crossed with the order to stop, and orders that are repeated.
            (Self::Stopping, Event::Ready | Event::StopAsked) => Self::Stopping,
            (Self::Stopped, Event::StopAsked) => Self::Stopped,
            // One that did not serve in time is killed afterwards.
            (Self::Error, Event::StopAsked | Event::EndedWell | Event::EndedBadly) => Self::Error,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Event::{EndedBadly, EndedWell, Ready, StartFailed, StopAsked};
    use super::State::{Error, Running, Starting, Stopped, Stopping};

    #[test]
    fn every_state_and_every_event() {
        let events = [Ready, StopAsked, StartFailed, EndedWell, EndedBadly];
        let table = [
            (Starting, [Some(Running), Some(Stopping), Some(Error), Some(Error), Some(Error)]),
            (Running, [None, Some(Stopping), None, Some(Stopped), Some(Error)]),
            (Stopping, [Some(Stopping), Some(Stopping), None, Some(Stopped), Some(Stopped)]),
            (Stopped, [None, Some(Stopped), None, None, None]),
            (Error, [None, Some(Error), None, Some(Error), Some(Error)]),
        ];
        for (state, expected) in table {
            for (event, expected) in events.into_iter().zip(expected) {
                assert_eq!(state.next(event), expected, "{state:?} and {event:?}");
            }
        }
    }
}
