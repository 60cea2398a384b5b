//! A client that has connected and not yet chosen: drives the negotiation over its socket, through TLS if asked.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use super::negotiation::{Negotiation, Session, Step};
use super::server::Export;
use super::stream::Stream;
use crate::Volume;
use crate::orders::Orders;

/// A socket with what was received and not used, and what is yet to be sent.
pub(super) struct Client {
    pub stream: Stream,
    pub input: BytesMut,
    pub output: Bytes,
}

/// What was agreed on; `None` when the client left or the server wants to stop, in which case `client` and
/// `negotiation` are in a state from which it can go on.
pub(super) async fn shake_hands<V: Volume>(
    client: &mut Client,
    negotiation: &mut Negotiation,
    export: &Export<V>,
    orders: &Orders,
) -> io::Result<Option<Session>> {
    loop {
        while !client.output.is_empty() {
            client.stream.write_buf(&mut client.output).await?;
        }
        client.stream.flush().await?;
        let mut out = BytesMut::new();
        let step =
            negotiation.step(&mut client.input, &mut out, &export.offer()).map_err(io::Error::other)?;
        client.output = out.freeze();
        match step {
            Step::Transmit(session) => return Ok(Some(session)),
            Step::Close => {
                client.stream.write_all_buf(&mut client.output).await?;
                client.stream.shutdown().await?;
                return Ok(None);
            }
            Step::StartTls => {
                client.stream.write_all_buf(&mut client.output).await?;
                start_tls(client, export).await?;
                *negotiation = negotiation.secured();
            }
            Step::NeedMore if !client.output.is_empty() => {}
            Step::NeedMore => tokio::select! {
                biased;
                _ = orders.changed() => return Ok(None),
                received = client.stream.read_buf(&mut client.input) => {
                    if received? == 0 {
                        return Ok(None);
                    }
                }
            },
        }
    }
}

async fn start_tls<V: Volume>(client: &mut Client, export: &Export<V>) -> io::Result<()> {
    let config =
        export.tls.config().ok_or_else(|| io::Error::other("TLS was offered without a certificate"))?;
    // The socket moves into the TLS stream; an unconnected one stands in for it meanwhile.
    let (placeholder, _) = tokio::net::UnixStream::pair()?;
    let plain = std::mem::replace(&mut client.stream, Stream::Unix(placeholder));
    client.stream = TlsAcceptor::from(config).accept(plain).await?.into();
    Ok(())
}
