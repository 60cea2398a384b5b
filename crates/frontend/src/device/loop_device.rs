//! The kernel's loop device: a file as a block device.
//! Every call here may do I/O on that file, so none may run on the thread that serves it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, NoArg, Opcode, Setter, ioctl};

const CONTROL: &str = "/dev/loop-control";
const GET_FREE: Opcode = 0x4c82;
const CONFIGURE: Opcode = 0x4c0a;
const CLEAR: Opcode = 0x4c01;
const SET_CAPACITY: Opcode = 0x4c07;

/// No second copy of the data in the page cache, and requests in parallel.
const DIRECT_IO: u32 = 16;
const READ_ONLY: u32 = 1;
const MAJOR: u32 = 7;

/// The kernel's `loop_config`.
#[repr(C)]
struct Config {
    fd: u32,
    block_size: u32,
    info: Info,
    reserved: [u64; 8],
}

/// The kernel's `loop_info64`.
#[repr(C)]
struct Info {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// Attaches `file` to a free device, and returns that.
///
/// The process keeps no descriptor of it. The last close of a device waits until all is written to it, and at the end
/// of a process that was killed nobody would be there to take what is written: it could never end.
pub(super) fn attach(file: &Path, block_size: u32, read_only: bool) -> io::Result<PathBuf> {
    let backing = open(file, OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty())?;
    if !Path::new(CONTROL).exists() {
        crate::modules::load("loop");
    }
    let control = open(CONTROL, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let flags = if read_only { DIRECT_IO | READ_ONLY } else { DIRECT_IO };
    loop {
        let number = get_free(&control)?;
        let path = PathBuf::from(format!("/dev/loop{number}"));
        match configure(&open_node(&path, number)?, &backing, block_size, flags, file) {
            Ok(()) => return Ok(path),
            // Another process took the same one.
            Err(Errno::BUSY) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Makes the device as large as its file.
pub(super) fn update_size(device: &Path, file: &Path) -> io::Result<()> {
    // Asking for the size makes the kernel learn it.
    std::fs::metadata(file)?;
    no_argument::<SET_CAPACITY>(&open(device, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Detaches now, or as soon as nobody uses it.
pub(super) fn detach(device: &Path) -> io::Result<()> {
    let device = open(device, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    match no_argument::<CLEAR>(&device) {
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => Ok(()),
        result => result,
    }
}

/// Detaches the devices that a process which died left attached to `file`.
pub(super) fn detach_all_of(file: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir("/sys/block")? {
        let entry = entry?.path();
        let Ok(backing) = std::fs::read_to_string(entry.join("loop/backing_file")) else { continue };
        if Path::new(backing.trim_end()) != file {
            continue;
        }
        let Some(name) = entry.file_name() else { continue };
        let path = Path::new("/dev").join(name);
        tracing::info!(device = %path.display(), "detaching a device of a process that died");
        detach(&path)?;
    }
    Ok(())
}

/// The node is there wherever /dev is the kernel's own; in a container we make it.
fn open_node(path: &Path, number: u32) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    match open(path, flags, Mode::empty()) {
        Err(Errno::NOENT) => {
            let device = rustix::fs::makedev(MAJOR, number);
            let mode = Mode::RUSR | Mode::WUSR;
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::BlockDevice, mode, device)?;
            Ok(open(path, flags, Mode::empty())?)
        }
        opened => Ok(opened?),
    }
}

fn configure(
    device: &OwnedFd,
    backing: &OwnedFd,
    block_size: u32,
    flags: u32,
    file: &Path,
) -> Result<(), Errno> {
    let mut file_name = [0; 64];
    let name = file.as_os_str().as_encoded_bytes();
    let len = name.len().min(63);
    file_name[..len].copy_from_slice(&name[..len]);
    let info = Info {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags,
        file_name,
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
    set_config(device, Config { fd: backing.as_raw_fd() as u32, block_size, info, reserved: [0; 8] })
}

#[allow(unsafe_code)]
fn set_config(device: &OwnedFd, config: Config) -> Result<(), Errno> {
    // SAFETY: LOOP_CONFIGURE reads a `loop_config`, whose layout `Config` has (a test checks its size), and keeps no
    // pointer to it.
    unsafe { ioctl(device, Setter::<CONFIGURE, Config>::new(config)) }
}

#[allow(unsafe_code)]
fn no_argument<const OPCODE: Opcode>(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: only used for LOOP_CLR_FD and LOOP_SET_CAPACITY, which take no argument.
    Ok(unsafe { ioctl(fd, NoArg::<OPCODE>::new()) }?)
}

fn get_free(control: &OwnedFd) -> io::Result<u32> {
    struct GetFree;

    #[allow(unsafe_code)]
    // SAFETY: LOOP_CTL_GET_FREE takes no argument; its answer is the call's own result.
    unsafe impl Ioctl for GetFree {
        type Output = u32;
        const IS_MUTATING: bool = false;

        fn opcode(&self) -> Opcode {
            GET_FREE
        }

        fn as_ptr(&mut self) -> *mut core::ffi::c_void {
            std::ptr::null_mut()
        }

        unsafe fn output_from_ptr(output: IoctlOutput, _: *mut core::ffi::c_void) -> rustix::io::Result<u32> {
            Ok(output as u32)
        }
    }

    #[allow(unsafe_code)]
    // SAFETY: see the implementation above.
    Ok(unsafe { ioctl(control, GetFree) }?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_have_the_kernels_sizes() {
        assert_eq!((size_of::<Info>(), size_of::<Config>()), (232, 304));
    }
}
