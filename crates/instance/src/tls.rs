//! Who may talk to an instance manager: with certificates, only those whose authority is ours, on both sides. There is
//! no falling back to connections without them.

use std::io;
use std::path::{Path, PathBuf};

use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

/// The name that every instance manager's certificate carries.
const PEER: &str = "longhorn-backend.longhorn-system";

#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot read {path}: {reason}; the TLS directory needs ca.crt, tls.crt and tls.key")]
pub struct TlsError {
    path: PathBuf,
    reason: String,
}

struct Files {
    authority: Certificate,
    identity: Identity,
}

fn read(directory: &Path) -> Result<Files, TlsError> {
    let file = |name: &str| {
        let path = directory.join(name);
        let failed = |error: io::Error| TlsError { path: path.clone(), reason: error.to_string() };
        std::fs::read(&path).map_err(failed)
    };
    let authority = Certificate::from_pem(file("ca.crt")?);
    Ok(Files { authority, identity: Identity::from_pem(file("tls.crt")?, file("tls.key")?) })
}

pub fn server(directory: &Path) -> Result<ServerTlsConfig, TlsError> {
    let Files { authority, identity } = read(directory)?;
    Ok(ServerTlsConfig::new().identity(identity).client_ca_root(authority))
}

pub fn client(directory: &Path) -> Result<ClientTlsConfig, TlsError> {
    let Files { authority, identity } = read(directory)?;
    Ok(ClientTlsConfig::new().ca_certificate(authority).identity(identity).domain_name(PEER))
}
