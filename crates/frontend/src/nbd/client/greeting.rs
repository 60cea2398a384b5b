//! The client's side of the handshake.

use std::io;
use std::sync::Arc;

use bytes::{Buf, BufMut, BytesMut};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

use super::super::stream::Stream;
use super::super::wire::{
    ALLOCATION_CONTEXT, INIT_MAGIC, MAX_PAYLOAD, OPTION_MAGIC, OPTION_REPLY_MAGIC, handshake_flag, info,
    option, option_reply,
};

/// A reply to an option is a few strings; a longer one is not meant well.
const MAX_REPLY: u32 = 64 << 10;

/// What the server told us of its export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerExport {
    pub size: u64,
    pub flags: u16,
    pub max_payload: u32,
    pub structured: bool,
    pub allocation: bool,
}

struct OptionReply {
    kind: u32,
    data: BytesMut,
}

pub(super) async fn negotiate(
    mut stream: Stream,
    name: &str,
    tls: Option<(Arc<ClientConfig>, String)>,
) -> io::Result<(Stream, ServerExport)> {
    if stream.read_u64().await? != INIT_MAGIC || stream.read_u64().await? != OPTION_MAGIC {
        return Err(io::Error::other("this is not an NBD server of the newstyle kind"));
    }
    let flags = stream.read_u16().await?;
    if flags & handshake_flag::FIXED_NEWSTYLE == 0 {
        return Err(io::Error::other("the NBD server is too old: it cannot negotiate"));
    }
    stream.write_u32(u32::from(flags & (handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES))).await?;
    if let Some((config, host)) = tls {
        expect_ack(&mut stream, option::STARTTLS, b"").await?;
        let host = ServerName::try_from(host).map_err(io::Error::other)?;
        stream = TlsConnector::from(config).connect(host, stream).await?.into();
    }
    let mut export =
        ServerExport { size: 0, flags: 0, max_payload: MAX_PAYLOAD, structured: false, allocation: false };
    export.structured = ask(&mut stream, option::STRUCTURED_REPLY, b"").await?.0.kind == option_reply::ACK;
    if export.structured {
        export.allocation = set_allocation(&mut stream, name).await?;
    }
    go(&mut stream, name, &mut export).await?;
    Ok((stream, export))
}

async fn set_allocation(stream: &mut Stream, name: &str) -> io::Result<bool> {
    let mut data = BytesMut::new();
    put_string(&mut data, name);
    data.put_u32(1);
    put_string(&mut data, ALLOCATION_CONTEXT);
    let (end, before) = ask(stream, option::SET_META_CONTEXT, &data).await?;
    Ok(end.kind == option_reply::ACK && before.iter().any(|reply| reply.kind == option_reply::META_CONTEXT))
}

async fn go(stream: &mut Stream, name: &str, export: &mut ServerExport) -> io::Result<()> {
    let mut data = BytesMut::new();
    put_string(&mut data, name);
    data.put_u16(1);
    data.put_u16(info::BLOCK_SIZE);
    let (end, infos) = ask(stream, option::GO, &data).await?;
    if end.kind != option_reply::ACK {
        let message = String::from_utf8_lossy(&end.data).into_owned();
        return Err(io::Error::other(format!(
            "the server refuses export {name:?}: {}",
            refusal(end.kind, &message)
        )));
    }
    let mut seen = false;
    for mut reply in infos.into_iter().filter(|reply| reply.kind == option_reply::INFO) {
        match reply.data.try_get_u16() {
            Ok(info::EXPORT) if reply.data.len() >= 10 => {
                (export.size, export.flags, seen) = (reply.data.get_u64(), reply.data.get_u16(), true);
            }
            Ok(info::BLOCK_SIZE) if reply.data.len() >= 12 => {
                export.max_payload = (&reply.data[8..12]).get_u32().clamp(4096, MAX_PAYLOAD);
            }
            _ => {}
        }
    }
    if seen { Ok(()) } else { Err(io::Error::other("the server did not say how large the export is")) }
}

fn refusal(kind: u32, message: &str) -> String {
    match (kind, message) {
        (option_reply::TLS_REQUIRED, _) => "it wants TLS; use nbds://".into(),
        (option_reply::UNKNOWN, "") => "there is no such export".into(),
        (kind, "") => format!("error {kind:#x}"),
        (_, message) => message.into(),
    }
}

async fn expect_ack(stream: &mut Stream, option: u32, data: &[u8]) -> io::Result<()> {
    let (end, _) = ask(stream, option, data).await?;
    if end.kind == option_reply::ACK {
        return Ok(());
    }
    Err(io::Error::other(format!("the server refuses: {}", String::from_utf8_lossy(&end.data))))
}

/// Sends one option; the reply that ends it, and those before.
async fn ask(stream: &mut Stream, option: u32, data: &[u8]) -> io::Result<(OptionReply, Vec<OptionReply>)> {
    let mut message = BytesMut::new();
    message.put_u64(OPTION_MAGIC);
    message.put_u32(option);
    message.put_u32(data.len() as u32);
    message.put_slice(data);
    stream.write_all(&message).await?;
    stream.flush().await?;
    let mut before = Vec::new();
    // A server that never comes to an end is not waited for.
    while before.len() < 1024 {
        let reply = read_reply(stream, option).await?;
        if reply.kind == option_reply::ACK || reply.kind & option_reply::FIRST_ERROR != 0 {
            return Ok((reply, before));
        }
        before.push(reply);
    }
    Err(io::Error::other("the server's answer does not end"))
}

async fn read_reply(stream: &mut Stream, option: u32) -> io::Result<OptionReply> {
    let magic = stream.read_u64().await?;
    let answered = stream.read_u32().await?;
    let kind = stream.read_u32().await?;
    let len = stream.read_u32().await?;
    if magic != OPTION_REPLY_MAGIC || answered != option || len > MAX_REPLY {
        return Err(io::Error::other("the server does not follow the protocol"));
    }
    let mut data = BytesMut::zeroed(len as usize);
    stream.read_exact(&mut data).await?;
    Ok(OptionReply { kind, data })
}

fn put_string(out: &mut BytesMut, string: &str) {
    out.put_u32(string.len() as u32);
    out.put_slice(string.as_bytes());
}
