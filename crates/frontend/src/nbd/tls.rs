//! TLS for NBD: certificates in PEM files become what the server and the client need.
//! Keys are read once and never logged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::negotiation::TlsOffer;

/// Where the server's certificate lies, and who may come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// When given, a client must show a certificate signed by this authority.
    pub client_authority: Option<PathBuf>,
}

/// Whether a server offers TLS to its clients.
#[derive(Clone, Default)]
pub enum ServerTls {
    #[default]
    Off,
    /// Plain clients are served too.
    Allowed(Arc<ServerConfig>),
    Required(Arc<ServerConfig>),
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{0}: {1}; it must be a PEM file that we may read")]
    File(PathBuf, rustls_pki_types::pem::Error),
    #[error("{0} holds no certificate")]
    Empty(PathBuf),
    #[error("the certificate and key in {0} and {1} do not work: {2}")]
    Pair(PathBuf, PathBuf, rustls::Error),
    #[error("the authority in {0} does not work: {1}")]
    Authority(PathBuf, String),
}

impl TlsFiles {
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let builder = ServerConfig::builder();
        let builder = match &self.client_authority {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let verifier = WebPkiClientVerifier::builder(Arc::new(authorities(path)?))
                    .build()
                    .map_err(|error| TlsError::Authority(path.clone(), error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let chain = certificates(&self.certificate)?;
        let config = builder
            .with_single_cert(chain, private_key(&self.key)?)
            .map_err(|error| TlsError::Pair(self.certificate.clone(), self.key.clone(), error))?;
        Ok(Arc::new(config))
    }
}

impl ServerTls {
    pub(crate) fn offer(&self) -> TlsOffer {
        match self {
            Self::Off => TlsOffer::Off,
            Self::Allowed(_) => TlsOffer::Allowed,
            Self::Required(_) => TlsOffer::Required,
        }
    }

    pub(crate) fn config(&self) -> Option<Arc<ServerConfig>> {
        match self {
            Self::Off => None,
            Self::Allowed(config) | Self::Required(config) => Some(config.clone()),
        }
    }
}

/// What a client needs to trust a server: the authority that signed its certificate, and optionally a certificate
/// of its own to show.
pub fn client_config(authority: &Path, own: Option<(&Path, &Path)>) -> Result<Arc<ClientConfig>, TlsError> {
    let builder = ClientConfig::builder().with_root_certificates(authorities(authority)?);
    let config = match own {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => builder
            .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
            .map_err(|error| TlsError::Pair(certificate.into(), key.into(), error))?,
    };
    Ok(Arc::new(config))
}

fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(path)? {
        store.add(certificate).map_err(|error| TlsError::Authority(path.into(), error.to_string()))?;
    }
    Ok(store)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let file = |error| TlsError::File(path.into(), error);
    let chain: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(file)?.collect::<Result<_, _>>().map_err(file)?;
    if chain.is_empty() { Err(TlsError::Empty(path.into())) } else { Ok(chain) }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| TlsError::File(path.into(), error))
}
