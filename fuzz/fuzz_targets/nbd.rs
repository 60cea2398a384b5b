//! A whole NBD conversation from a client that may say anything: the server must neither panic nor hang nor answer
//! without end, whatever it is told and wherever the client stops.
#![no_main]

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use granary_frontend::nbd::{Export, Server};
use granary_frontend::{AllocationRun, Volume, VolumeError};
use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::watch;

const SIZE: usize = 64 << 10;

fuzz_target!(|data: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let server = Server::new(Export::new("disk", Memory::default()));
        let (mut client, served) = UnixStream::pair().expect("two sockets");
        server.serve(served);
        let (mut read, mut write) = client.split();
        let talk = async {
            // The server may have hung up already.
            let _sent = write.write_all(data).await;
            let _shut = write.shutdown().await;
        };
        let listen = async {
            let mut buffer = vec![0; SIZE];
            while read.read(&mut buffer).await.is_ok_and(|len| len > 0) {}
        };
        let whole = async { tokio::join!(talk, listen) };
        tokio::time::timeout(Duration::from_secs(5), whole)
            .await
            .expect("the server hangs up after its client");
        server.stop().await;
    });
});

/// Checks what frontends promise: nothing outside the volume is asked for.
#[derive(Clone)]
struct Memory {
    bytes: Rc<RefCell<BytesMut>>,
    size: Rc<watch::Sender<u64>>,
}

impl Default for Memory {
    fn default() -> Self {
        let bytes = Rc::new(RefCell::new(BytesMut::zeroed(SIZE)));
        Self { bytes, size: Rc::new(watch::Sender::new(SIZE as u64)) }
    }
}

impl Volume for Memory {
    fn size(&self) -> watch::Receiver<u64> {
        self.size.subscribe()
    }

    async fn read(&self, offset: u64, len: u32) -> Result<Bytes, VolumeError> {
        Ok(Bytes::copy_from_slice(&self.bytes.borrow()[offset as usize..][..len as usize]))
    }

    async fn write(&self, offset: u64, data: Bytes, _durable: bool) -> Result<(), VolumeError> {
        self.bytes.borrow_mut()[offset as usize..][..data.len()].copy_from_slice(&data);
        Ok(())
    }

    async fn zero(&self, offset: u64, len: u64, _allocate: bool, _durable: bool) -> Result<(), VolumeError> {
        self.bytes.borrow_mut()[offset as usize..][..len as usize].fill(0);
        Ok(())
    }

    async fn flush(&self) -> Result<(), VolumeError> {
        Ok(())
    }

    async fn allocation(&self, offset: u64, len: u64) -> Result<Vec<AllocationRun>, VolumeError> {
        assert!(offset + len <= SIZE as u64, "asked about {offset}+{len}");
        Ok(vec![
            AllocationRun { len: len.div_ceil(2), hole: false },
            AllocationRun { len: len / 2, hole: true },
        ])
    }
}
