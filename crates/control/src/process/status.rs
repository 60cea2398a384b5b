//! The status of an engine or replica, for each state its process can be in. When it failed is kept in a condition.

use granary_api::longhorn::{Condition, InstanceState, InstanceStatus};
use granary_api::wire::ConditionStatus;
use granary_instance::wire::process::ProcessResponse;
use jiff::Timestamp;

/// The condition that tells why, and since when, a process does not run.
const CONDITION: &str = "Running";

/// As all times in these kinds are written.
pub fn time(seconds: i64) -> String {
    Timestamp::from_second(seconds).unwrap_or_default().to_string()
}

/// None for a text that is empty or no time.
pub fn seconds(time: Option<&str>) -> Option<i64> {
    time?.parse::<Timestamp>().ok().map(Timestamp::as_second)
}

/// `HOST:PORT` for data, while it runs.
pub fn address(status: &InstanceStatus) -> Option<String> {
    let host = status.storage_ip.as_deref().filter(|host| !host.is_empty())?;
    let port = status.port.filter(|port| *port != 0)?;
    Some(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

pub fn stopped() -> InstanceStatus {
    state(InstanceState::Stopped)
}

pub fn stopping(before: &InstanceStatus) -> InstanceStatus {
    let manager = before.instance_manager_name.clone();
    InstanceStatus {
        instance_manager_name: manager,
        uuid: before.uuid.clone(),
        ..state(InstanceState::Stopping)
    }
}

/// What was known stays known, so that whoever returns is recognised.
pub fn unknown(before: &InstanceStatus) -> InstanceStatus {
    InstanceStatus { current_state: Some(InstanceState::Unknown), ..before.clone() }
}

pub fn starting(manager: &str, ip: &str, data: &str, process: &ProcessResponse) -> InstanceStatus {
    InstanceStatus {
        current_state: Some(InstanceState::Starting),
        starting: Some(true),
        started: Some(false),
        ..running(manager, ip, data, process)
    }
}

pub fn running(manager: &str, ip: &str, data: &str, process: &ProcessResponse) -> InstanceStatus {
    let status = process.status.clone().unwrap_or_default();
    InstanceStatus {
        instance_manager_name: Some(manager.to_owned()),
        ip: Some(ip.to_owned()),
        storage_ip: Some(data.to_owned()),
        port: Some(i64::from(status.port_start)),
        started: Some(true),
        uuid: Some(status.uuid),
        ..state(InstanceState::Running)
    }
}

/// The time is that of the first time it was seen to have failed like this.
pub fn failed(before: &InstanceStatus, why: &str, now: i64) -> InstanceStatus {
    let known = before.conditions.iter().flatten().find(|condition| {
        condition.type_.as_deref() == Some(CONDITION) && condition.message.as_deref() == Some(why)
    });
    let since = known.filter(|_| before.current_state == Some(InstanceState::Error));
    let since = since.and_then(|condition| condition.last_transition_time.clone());
    let condition = Condition {
        type_: Some(CONDITION.to_owned()),
        status: Some(ConditionStatus::False),
        reason: Some("ProcessFailed".to_owned()),
        message: Some(why.to_owned()),
        last_transition_time: Some(since.unwrap_or_else(|| time(now))),
        ..Condition::default()
    };
    InstanceStatus {
        instance_manager_name: before.instance_manager_name.clone(),
        uuid: before.uuid.clone(),
        conditions: Some(vec![condition]),
        ..state(InstanceState::Error)
    }
}

fn state(current: InstanceState) -> InstanceStatus {
    InstanceStatus {
        current_state: Some(current),
        starting: Some(false),
        started: Some(false),
        ..InstanceStatus::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_the_time_it_was_first_seen() {
        let first = failed(&InstanceStatus::default(), "exit status 1", 100);
        let later = failed(&first, "exit status 1", 200);
        assert_eq!(later, first);
        assert_ne!(failed(&first, "exit status 2", 200), first, "another failure has a time of its own");
        assert_ne!(failed(&stopped(), "exit status 1", 200), first);
    }

    #[test]
    fn times_are_read_as_they_are_written() {
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(seconds(Some(&time(1_750_000_000))), Some(1_750_000_000));
        assert_eq!((seconds(Some("")), seconds(None)), (None, None));
    }

    #[test]
    fn an_address_of_the_sixth_version_is_bracketed() {
        let mut status =
            InstanceStatus { storage_ip: Some("fd00::1".into()), port: Some(9), ..InstanceStatus::default() };
        assert_eq!(address(&status).as_deref(), Some("[fd00::1]:9"));
        status.storage_ip = Some("10.0.0.1".into());
        assert_eq!(address(&status).as_deref(), Some("10.0.0.1:9"));
        status.port = None;
        assert_eq!(address(&status), None);
    }
}
