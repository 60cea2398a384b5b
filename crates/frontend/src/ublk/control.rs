//! Asking the ublk driver to add, start, stop and remove devices.
//! Most of this waits for the driver, and starting a device reads from it, so none of it may run on the thread that
//! serves a volume.

use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, squeue, types};
use rustix::fs::{Mode, OFlags, open};

use super::abi::{self, Command, Info, Parameters, State};

pub(super) fn features() -> io::Result<u64> {
    let mut features = [0; 8];
    ask(Command::GetFeatures, abi::ANY_DEVICE, 0, &mut features)?;
    Ok(u64::from_ne_bytes(features))
}

/// The device that was added: as was wanted, as far as the driver knows how.
pub(super) fn add(wanted: &Info) -> io::Result<Info> {
    let mut info = wanted.encode();
    ask(Command::Add, wanted.device, 0, &mut info)?;
    Ok(Info::decode(info))
}

pub(super) fn info(device: u32) -> io::Result<Info> {
    let wanted = Info { depth: 0, state: State::Dead, max_io: 0, device, process: 0, features: 0, mark: 0 };
    let mut info = wanted.encode();
    ask(Command::GetInfo, device, 0, &mut info)?;
    Ok(Info::decode(info))
}

pub(super) fn set_parameters(device: u32, parameters: &Parameters) -> io::Result<()> {
    ask(Command::SetParameters, device, 0, &mut parameters.encode())
}

pub(super) fn parameters(device: u32) -> io::Result<Parameters> {
    let mut parameters = Parameters::blank();
    ask(Command::GetParameters, device, 0, &mut parameters)?;
    Ok(Parameters::decode(parameters))
}

/// Makes the block device appear; returns once the kernel has looked for partitions on it.
pub(super) fn start(device: u32) -> io::Result<()> {
    ask(Command::Start, device, u64::from(std::process::id()), &mut [])
}

/// Takes the block device away. Requests in flight are waited for; what comes later fails.
pub(super) fn stop(device: u32) -> io::Result<()> {
    ask(Command::Stop, device, 0, &mut [])
}

/// Frees the device's number; waits until nobody has `/dev/ublkcN` open.
pub(super) fn delete(device: u32) -> io::Result<()> {
    ask(Command::Delete, device, 0, &mut [])
}

/// Busy until the process that served the device is gone and the driver has noticed.
pub(super) fn start_recovery(device: u32) -> io::Result<()> {
    ask(Command::StartRecovery, device, 0, &mut [])
}

pub(super) fn end_recovery(device: u32) -> io::Result<()> {
    ask(Command::EndRecovery, device, u64::from(std::process::id()), &mut [])
}

pub(super) fn update_size(device: u32, sectors: u64) -> io::Result<()> {
    ask(Command::UpdateSize, device, sectors, &mut [])
}

fn ask(command: Command, device: u32, data: u64, buffer: &mut [u8]) -> io::Result<()> {
    let control = open(abi::CONTROL, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let mut ring = IoUring::<squeue::Entry128>::builder().build(1)?;
    let entry = opcode::UringCmd80::new(types::Fd(control.as_raw_fd()), command as u32)
        .cmd(abi::control_command(device, data, buffer))
        .build();
    push(&mut ring, &entry)?;
    loop {
        match ring.submit_and_wait(1) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if let Some(completion) = ring.completion().next() {
            let result = completion.result();
            return if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) };
        }
    }
}

#[allow(unsafe_code)]
fn push(ring: &mut IoUring<squeue::Entry128>, entry: &squeue::Entry128) -> io::Result<()> {
    // SAFETY: the one caller keeps the descriptor and the buffer that the entry names until the command has ended: it
    // returns only then, or when the kernel has not taken the entry.
    unsafe { ring.submission().push(entry) }.map_err(io::Error::other)
}
