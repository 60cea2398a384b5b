//! Reaches a running engine's control API.

use std::time::Duration;

use granary_block::wire::address::Address;
use tonic::transport::{Channel, Endpoint};

use crate::v1::engine_client::EngineClient;

pub type Client = EngineClient<Channel>;

/// An engine on the same machine answers at once; one that does not is stopped or stuck.
const CONNECT: Duration = Duration::from_secs(5);
/// While a command runs, the engine is asked this often whether it is still there, and has as long to answer. That
/// says nothing of the command, which may take its time.
const STILL_THERE: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
#[error("no engine answers at {address}: {reason}; is it running, and is this its --control?")]
pub struct ConnectError {
    address: Address,
    reason: String,
}

pub async fn connect(address: &Address) -> Result<Client, ConnectError> {
    let uri = match address {
        Address::Tcp(target) => format!("http://{target}"),
        Address::Unix(_) => address.to_string(),
    };
    let refused = |error: tonic::transport::Error| ConnectError {
        address: address.clone(),
        reason: innermost(&error).to_string(),
    };
    let endpoint = Endpoint::from_shared(uri).map_err(refused)?.connect_timeout(CONNECT);
    let endpoint = endpoint.http2_keep_alive_interval(STILL_THERE).keep_alive_timeout(STILL_THERE);
    Ok(EngineClient::new(endpoint.connect().await.map_err(refused)?))
}

/// The layers above it only say "transport error".
fn innermost<'a>(error: &'a (dyn std::error::Error + 'static)) -> &'a (dyn std::error::Error + 'static) {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error
}
