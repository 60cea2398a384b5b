//! The kernel's ublk protocol, as far as one queue whose data is copied by us needs it: numbers, and how commands and
//! descriptors are laid out. All integers are in the machine's own order. It decodes and encodes; it decides nothing.

use bytes::{Buf, BufMut};

pub(super) const CONTROL: &str = "/dev/ublk-control";
pub(super) const SECTOR: u64 = 512;
/// "Whichever is free", as the number of a device.
pub(super) const ANY_DEVICE: u32 = u32::MAX;
/// What a command ends with when its device is stopped.
pub(super) const ABORTED: i32 = -19;
pub(super) const DESCRIPTOR_LEN: usize = 24;
const INFO_LEN: usize = 64;
const PARAMETERS_LEN: usize = 60;

pub(super) mod feature {
    pub const USER_RECOVERY: u64 = 1 << 3;
    pub const USER_RECOVERY_REISSUE: u64 = 1 << 4;
    pub const IOCTL_ENCODE: u64 = 1 << 6;
    pub const USER_COPY: u64 = 1 << 7;
    pub const UPDATE_SIZE: u64 = 1 << 10;
}

pub(super) mod attribute {
    pub const READ_ONLY: u32 = 1;
    pub const VOLATILE_CACHE: u32 = 1 << 2;
    pub const FUA: u32 = 1 << 3;
}

/// What `/dev/ublk-control` is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Command {
    GetInfo = answered(0x02),
    Add = exchanged(0x04, 32),
    Delete = exchanged(0x05, 32),
    Start = exchanged(0x06, 32),
    Stop = exchanged(0x07, 32),
    SetParameters = exchanged(0x08, 32),
    GetParameters = answered(0x09),
    StartRecovery = exchanged(0x10, 32),
    EndRecovery = exchanged(0x11, 32),
    GetFeatures = answered(0x13),
    UpdateSize = exchanged(0x15, 32),
}

/// What a device's queue is told.
pub(super) const FETCH: u32 = exchanged(0x20, 16);
pub(super) const COMMIT_AND_FETCH: u32 = exchanged(0x21, 16);

/// The kernel's `_IOR('u', number, …)` for a control command.
const fn answered(number: u32) -> u32 {
    2 << 30 | 32 << 16 | (b'u' as u32) << 8 | number
}

/// The kernel's `_IOWR('u', number, …)`.
const fn exchanged(number: u32, len: u32) -> u32 {
    3 << 30 | len << 16 | (b'u' as u32) << 8 | number
}

/// The kernel's `ublksrv_ctrl_cmd`, at the head of a long command.
pub(super) fn control_command(device: u32, data: u64, buffer: &mut [u8]) -> [u8; 80] {
    let mut command = [0; 80];
    let mut out = &mut command[..];
    out.put_u32_ne(device);
    // Not for one queue.
    out.put_u16_ne(u16::MAX);
    out.put_u16_ne(buffer.len() as u16);
    out.put_u64_ne(if buffer.is_empty() { 0 } else { buffer.as_mut_ptr() as u64 });
    out.put_u64_ne(data);
    command
}

/// The kernel's `ublksrv_io_cmd` for the first and only queue.
pub(super) fn queue_command(tag: u16, result: i32) -> [u8; 16] {
    let mut command = [0; 16];
    let mut out = &mut command[2..];
    out.put_u16_ne(tag);
    out.put_i32_ne(result);
    command
}

/// Where in `/dev/ublkcN` the data of a request is read and written.
pub(super) fn data_offset(tag: u16) -> u64 {
    0x8000_0000 + (u64::from(tag) << 25)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Added and not started, or stopped.
    Dead,
    Live,
    /// Nobody serves it: its users wait.
    Quiesced,
    Other(u16),
}

/// The kernel's `ublksrv_ctrl_dev_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Info {
    pub depth: u16,
    pub state: State,
    pub max_io: u32,
    pub device: u32,
    pub process: i32,
    pub features: u64,
    /// Ours to use; the kernel only keeps it.
    pub mark: u64,
}

impl Info {
    pub fn encode(&self) -> [u8; INFO_LEN] {
        let mut info = [0; INFO_LEN];
        let mut out = &mut info[..];
        out.put_u16_ne(1);
        out.put_u16_ne(self.depth);
        out.put_u32_ne(0);
        out.put_u32_ne(self.max_io);
        out.put_u32_ne(self.device);
        out.put_i32_ne(self.process);
        out.put_u32_ne(0);
        out.put_u64_ne(self.features);
        out.put_u64_ne(self.mark);
        info
    }

    pub fn decode(info: [u8; INFO_LEN]) -> Self {
        let mut info = &info[2..];
        let depth = info.get_u16_ne();
        let state = match info.get_u16_ne() {
            0 => State::Dead,
            1 => State::Live,
            2 => State::Quiesced,
            other => State::Other(other),
        };
        info.advance(2);
        let (max_io, device, process) = (info.get_u32_ne(), info.get_u32_ne(), info.get_i32_ne());
        info.advance(4);
        Self { depth, state, max_io, device, process, features: info.get_u64_ne(), mark: info.get_u64_ne() }
    }
}

/// The kernel's `ublk_params`, its parts for every device and for discarding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    pub attributes: u32,
    pub logical_block: u32,
    pub physical_block: u32,
    pub max_io: u32,
    pub sectors: u64,
    /// Of one request to discard or to write zeroes.
    pub max_zero_sectors: u32,
}

impl Parameters {
    pub fn encode(&self) -> [u8; PARAMETERS_LEN] {
        const BASIC_AND_DISCARD: u32 = 3;
        let mut parameters = [0; PARAMETERS_LEN];
        let mut out = &mut parameters[..];
        out.put_u32_ne(PARAMETERS_LEN as u32);
        out.put_u32_ne(BASIC_AND_DISCARD);
        out.put_u32_ne(self.attributes);
        let physical = self.physical_block.trailing_zeros() as u8;
        out.put_slice(&[self.logical_block.trailing_zeros() as u8, physical, physical, physical]);
        out.put_u32_ne(self.max_io / SECTOR as u32);
        out.put_u32_ne(0);
        out.put_u64_ne(self.sectors);
        out.put_u64_ne(0);
        out.put_u32_ne(0);
        out.put_u32_ne(self.physical_block);
        out.put_u32_ne(self.max_zero_sectors);
        out.put_u32_ne(self.max_zero_sectors);
        out.put_u16_ne(1);
        parameters
    }

    pub fn decode(parameters: [u8; PARAMETERS_LEN]) -> Self {
        let mut parameters = &parameters[8..];
        let attributes = parameters.get_u32_ne();
        let logical_block = 1 << parameters.get_u8();
        let physical_block = 1 << parameters.get_u8();
        parameters.advance(2);
        let max_io = parameters.get_u32_ne() * SECTOR as u32;
        parameters.advance(4);
        let sectors = parameters.get_u64_ne();
        parameters.advance(16);
        let max_zero_sectors = parameters.get_u32_ne();
        Self { attributes, logical_block, physical_block, max_io, sectors, max_zero_sectors }
    }

    /// A buffer in which the kernel answers.
    pub fn blank() -> [u8; PARAMETERS_LEN] {
        let mut blank = [0; PARAMETERS_LEN];
        blank[..4].copy_from_slice(&(PARAMETERS_LEN as u32).to_ne_bytes());
        blank
    }
}

/// What a user of the device wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Write { durable: bool },
    Flush,
    Discard,
    WriteZeroes { allocate: bool, durable: bool },
    Unknown(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub operation: Operation,
    pub offset: u64,
    pub len: u64,
}

impl Request {
    /// From the kernel's `ublksrv_io_desc`.
    pub fn decode(descriptor: [u8; DESCRIPTOR_LEN]) -> Self {
        const FUA: u32 = 1 << 13;
        const NO_UNMAP: u32 = 1 << 15;
        let mut descriptor = &descriptor[..];
        let word = descriptor.get_u32_ne();
        let durable = word & FUA != 0;
        let operation = match word as u8 {
            0 => Operation::Read,
            1 => Operation::Write { durable },
            2 => Operation::Flush,
            3 => Operation::Discard,
            5 => Operation::WriteZeroes { allocate: word & NO_UNMAP != 0, durable },
            other => Operation::Unknown(other),
        };
        let len = u64::from(descriptor.get_u32_ne()) * SECTOR;
        Self { operation, offset: descriptor.get_u64_ne().saturating_mul(SECTOR), len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_kernels_numbers() {
        let numbers = [Command::GetInfo as u32, Command::Add as u32, Command::GetFeatures as u32];
        assert_eq!(numbers, [0x8020_7502, 0xc020_7504, 0x8020_7513]);
        assert_eq!([FETCH, COMMIT_AND_FETCH], [0xc010_7520, 0xc010_7521]);
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let info = Info {
            depth: 128,
            state: State::Dead,
            max_io: 1 << 20,
            device: 7,
            process: 42,
            features: feature::USER_COPY,
            mark: 0x0123_4567_89ab_cdef,
        };
        assert_eq!(Info::decode(info.encode()), info);
        let parameters = Parameters {
            attributes: attribute::FUA,
            logical_block: 512,
            physical_block: 4096,
            max_io: 1 << 20,
            sectors: 1 << 21,
            max_zero_sectors: 1 << 20,
        };
        assert_eq!(Parameters::decode(parameters.encode()), parameters);
    }

    #[test]
    fn requests_are_read_as_the_kernel_writes_them() {
        let descriptor = |word: u32| {
            let mut descriptor = Vec::new();
            descriptor.put_u32_ne(word);
            descriptor.put_u32_ne(8);
            descriptor.put_u64_ne(16);
            descriptor.put_u64_ne(0);
            Request::decode(descriptor.try_into().unwrap())
        };
        for (word, operation) in [
            (0, Operation::Read),
            (1, Operation::Write { durable: false }),
            (1 | 1 << 13, Operation::Write { durable: true }),
            (2, Operation::Flush),
            (3, Operation::Discard),
            (5, Operation::WriteZeroes { allocate: false, durable: false }),
            (5 | 1 << 15, Operation::WriteZeroes { allocate: true, durable: false }),
            (15, Operation::Unknown(15)),
        ] {
            assert_eq!(descriptor(word), Request { operation, offset: 8192, len: 4096 });
        }
    }
}
