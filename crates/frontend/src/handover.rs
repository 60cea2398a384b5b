//! How a running frontend moves to another process: descriptors, a header and bytes over a unix socket.
//! The sender decides: the receiver uses nothing before it is told to, so that two processes never serve one client.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use bytes::BytesMut;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// The kernel passes at most 253 at a time.
const FDS_PER_MESSAGE: usize = 64;
/// More than any server can have frozen; a length beyond it is not one of ours.
const MAX_LEN: u64 = 1 << 32;
const READY: u8 = b'R';
const GO: u8 = b'G';

/// What moves: the meaning of each part is the frontend's.
#[derive(Debug, Default)]
pub struct Parcel {
    pub header: Vec<u8>,
    pub body: BytesMut,
    pub fds: Vec<OwnedFd>,
}

impl Parcel {
    /// Sends everything but the word to begin. When this fails the receiver never begins, and the sender goes on.
    pub fn send(&self, mut to: &UnixStream) -> io::Result<()> {
        for len in [self.header.len(), self.body.len(), self.fds.len()] {
            to.write_all(&(len as u64).to_be_bytes())?;
        }
        to.write_all(&self.header)?;
        to.write_all(&self.body)?;
        for fds in self.fds.chunks(FDS_PER_MESSAGE) {
            send_fds(to, fds)?;
        }
        Ok(())
    }

    /// Receives what [`Self::send`] sent; nothing of it may be used before [`await_go`].
    pub fn receive(mut from: &UnixStream) -> io::Result<Self> {
        let mut lens = [0; 3];
        for len in &mut lens {
            let mut raw = [0; 8];
            from.read_exact(&mut raw)?;
            *len = u64::from_be_bytes(raw);
            if *len > MAX_LEN {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "what came is not a parcel"));
            }
        }
        let [header, body, fds] = lens;
        let mut parcel = Self { header: read_bytes(from, header)?, ..Self::default() };
        parcel.body = BytesMut::from(bytes::Bytes::from(read_bytes(from, body)?));
        while (parcel.fds.len() as u64) < fds {
            receive_fds(from, &mut parcel.fds)?;
        }
        Ok(parcel)
    }
}

/// The sender's last step: once the receiver has everything, it is told to begin. After `Ok` the sender must not touch
/// what it sent; after `Err` the receiver does not.
pub fn give_go(mut to: &UnixStream) -> io::Result<()> {
    let mut ready = [0];
    to.read_exact(&mut ready)?;
    if ready != [READY] {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the next process did not take over"));
    }
    to.write_all(&[GO])
}

/// The receiver's last step: says that it has everything, and waits for the word.
pub fn await_go(mut from: &UnixStream) -> io::Result<()> {
    from.write_all(&[READY])?;
    let mut go = [0];
    from.read_exact(&mut go)?;
    if go == [GO] {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "the process before this one did not let go"))
    }
}

fn read_bytes(from: &UnixStream, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(len).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == len { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn send_fds(to: &UnixStream, fds: &[OwnedFd]) -> io::Result<()> {
    let borrowed: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_PER_MESSAGE))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fits = control.push(SendAncillaryMessage::ScmRights(&borrowed));
    debug_assert!(fits, "the space is for as many as are sent");
    // Descriptors travel with a byte at least.
    sendmsg(to, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive_fds(from: &UnixStream, into: &mut Vec<OwnedFd>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_PER_MESSAGE))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let message = recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let before = into.len();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = part {
            into.extend(fds);
        }
    }
    if message.bytes == 0 || into.len() == before {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_parcel_arrives_whole_and_is_used_only_after_the_word() {
        let (here, there) = UnixStream::pair().unwrap();
        let receiver = std::thread::spawn(move || {
            let parcel = Parcel::receive(&there).unwrap();
            await_go(&there).unwrap();
            parcel
        });
        let fds = (0..150).map(|_| File::open("/dev/null").unwrap().into()).collect();
        let sent = Parcel { header: b"header".to_vec(), body: BytesMut::zeroed(3 << 20), fds };
        sent.send(&here).unwrap();
        give_go(&here).unwrap();
        let parcel = receiver.join().unwrap();
        assert_eq!((parcel.header, parcel.body, parcel.fds.len()), (sent.header, sent.body, 150));
    }

    #[test]
    fn a_receiver_that_dies_early_leaves_everything_with_the_sender() {
        let (here, there) = UnixStream::pair().unwrap();
        drop(there);
        let parcel = Parcel { header: b"header".to_vec(), ..Parcel::default() };
        assert!(parcel.send(&here).and_then(|()| give_go(&here)).is_err());
    }

    #[test]
    fn garbage_is_refused_before_memory_is_taken() {
        let (here, there) = UnixStream::pair().unwrap();
        { &here }.write_all(&[0xff; 24]).unwrap();
        drop(here);
        assert!(Parcel::receive(&there).is_err());
    }
}
