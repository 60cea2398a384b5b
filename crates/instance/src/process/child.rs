//! One running program: started, found again, signalled and waited for. It is known by a handle that no other process
//! can inherit, so that a number used again is never mistaken for it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::plan::Plan;

/// By this a process is found that was started just before its manager died.
pub const RUN_VARIABLE: &str = "GRANARY_RUN";

pub struct Child {
    pub pid: u32,
    handle: AsyncFd<OwnedFd>,
    /// Only the one who started a process learns how it ended.
    own: Option<tokio::process::Child>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Well,
    Code(i32),
    Signal(i32),
    /// Nobody was there to see it.
    Unseen,
}

impl Child {
    /// Its output goes straight to its log, so that nothing is lost or stuck when its manager is gone.
    pub fn start(plan: &Plan, run: &str, log: File) -> io::Result<Self> {
        let mut command = tokio::process::Command::new(&plan.program);
        command.args(&plan.args).env(RUN_VARIABLE, run).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        // What is typed at the manager's terminal is not meant for it.
        command.process_group(0);
        let own = command.spawn()?;
        let pid = own.id().ok_or_else(|| io::Error::other("it ended before it began"))?;
        Ok(Self { pid, handle: handle(pid)?, own: Some(own) })
    }

    /// The process that has this number now, and not one that has it later.
    pub fn adopt(pid: u32) -> io::Result<Self> {
        Ok(Self { pid, handle: handle(pid)?, own: None })
    }

    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(self.handle.get_ref(), signal) {
            // It is gone already, which is what signals here are for.
            Err(Errno::SRCH) => Ok(()),
            other => Ok(other?),
        }
    }

    /// May be dropped and called again.
    pub async fn ended(&mut self) -> End {
        match &mut self.own {
            Some(own) => own.wait().await.map_or(End::Unseen, End::of),
            None => {
                // The handle is readable once the process is gone, and stays so.
                self.handle.readable().await.ok();
                End::Unseen
            }
        }
    }
}

impl End {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(0), _) => Self::Well,
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Unseen,
        }
    }

    pub fn describe(self) -> String {
        match self {
            Self::Well => "it ended by itself".into(),
            Self::Code(code) => format!("it ended with code {code}"),
            Self::Signal(signal) => format!("it was ended by signal {signal}"),
            Self::Unseen => "it has ended".into(),
        }
    }
}

fn handle(pid: u32) -> io::Result<AsyncFd<OwnedFd>> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    watch(pidfd_open(pid, PidfdFlags::NONBLOCK)?)
}

#[allow(unsafe_code)]
fn watch(handle: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open, and is itself the same descriptor until it is dropped, which `AsyncFd` does last.
    Ok(unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) }?)
}

/// When a process was started, in ticks since the machine was; with its number it is unique until the next boot.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name comes before, and may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if state == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// The process that was started as this run, if it is there.
pub fn find(run: &str) -> Option<u32> {
    let wanted = format!("{RUN_VARIABLE}={run}");
    let processes = std::fs::read_dir("/proc").ok()?;
    processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).find(|pid: &u32| {
        let environment =
            std::fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    })
}

/// Which life of the machine this is.
pub fn boot() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::plan::Role;
    use super::*;

    fn shell(script: &str) -> Plan {
        Plan { program: "/bin/sh".into(), args: vec!["-c".into(), script.into()], role: Role::Other }
    }

    #[tokio::test]
    async fn how_a_program_ended_is_known_to_who_started_it() {
        for (script, end) in [("exit 0", End::Well), ("exit 7", End::Code(7)), ("kill -9 $$", End::Signal(9))]
        {
            let mut child = Child::start(&shell(script), "x", tempfile::tempfile().unwrap()).unwrap();
            assert_eq!(child.ended().await, end, "{script}");
            assert_eq!(child.ended().await, end, "and stays known");
            child.signal(Signal::KILL).unwrap();
        }
    }

    #[tokio::test]
    async fn a_program_is_found_and_followed_by_others() {
        let run = uuid::Uuid::new_v4().to_string();
        let mut child = Child::start(&shell("exec sleep 1000"), &run, tempfile::tempfile().unwrap()).unwrap();
        assert_eq!(find(&run), Some(child.pid));
        assert!(start_time(child.pid).unwrap() >= start_time(std::process::id()).unwrap());
        let mut adopted = Child::adopt(child.pid).unwrap();
        adopted.signal(Signal::INT).unwrap();
        assert_eq!(adopted.ended().await, End::Unseen);
        assert_eq!(child.ended().await, End::Signal(2));
        assert_eq!((find(&run), start_time(child.pid)), (None, None));
    }
}
