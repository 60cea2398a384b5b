//! The server's certificates: a CA of its own, and a serving certificate that it signs anew before it expires.
//!
//! Owns the files below `<data-dir>/tls`. Must never leave a key readable by others.

use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    #[error("certificates cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    #[error(
        "the certificates in {path} cannot be used: {detail}; delete that directory to have new ones made"
    )]
    Use { path: PathBuf, detail: String },
}

/// What a server needs to serve, and a client to trust it.
pub struct Certificates {
    pub ca_pem: String,
    pub config: Arc<ServerConfig>,
}

const CA_DAYS: i64 = 3650;
const SERVING_DAYS: i64 = 365;

/// Loads the CA, making it at the first start, and signs a fresh serving certificate for these addresses.
/// The serving certificate is not kept: every start makes one, so it never expires in use for long.
pub fn load_or_make(dir: &Path, names: &[String], addresses: &[IpAddr]) -> Result<Certificates, TlsError> {
    fs::create_dir_all(dir).map_err(|source| TlsError::File { path: dir.into(), source })?;
    let (ca_file, key_file) = (dir.join("ca.crt"), dir.join("ca.key"));
    if !ca_file.exists() || !key_file.exists() {
        make_ca(&ca_file, &key_file)?;
    }
    let ca_pem = read(&ca_file)?;
    let unusable = |detail: String| TlsError::Use { path: dir.into(), detail };
    let key = KeyPair::from_pem(&read(&key_file)?).map_err(|e| unusable(e.to_string()))?;
    // The CA's name and key are all that its signature carries.
    let issuer = rcgen::Issuer::new(ca_params(), key);
    let serving_key = KeyPair::generate()?;
    let certificate = serving_params(names, addresses)?.signed_by(&serving_key, &issuer)?;
    let chain = vec![certificate.der().clone(), ca_der(&ca_pem).map_err(unusable)?];
    let private = PrivateKeyDer::try_from(serving_key.serialize_der())
        .map_err(|e| TlsError::Use { path: dir.into(), detail: e.to_string() })?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| TlsError::Use { path: dir.into(), detail: e.to_string() })?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|e| TlsError::Use { path: dir.into(), detail: e.to_string() })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Certificates { ca_pem, config: Arc::new(config) })
}

fn ca_der(pem: &str) -> Result<CertificateDer<'static>, String> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|e| e.to_string())
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

fn validity(params: &mut CertificateParams, days: i64) {
    let now = std::time::SystemTime::now();
    let day = std::time::Duration::from_secs(24 * 60 * 60);
    // Clocks differ a little between machines.
    params.not_before = (now - day).into();
    params.not_after = (now + day * days as u32).into();
}

fn ca_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named("granary-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    validity(&mut params, CA_DAYS);
    params
}

fn make_ca(ca_file: &Path, key_file: &Path) -> Result<(), TlsError> {
    let issuer = CertifiedIssuer::self_signed(ca_params(), KeyPair::generate()?)?;
    write_private(key_file, issuer.key().serialize_pem().as_bytes())?;
    write_private(ca_file, issuer.pem().as_bytes())
}

fn serving_params(names: &[String], addresses: &[IpAddr]) -> Result<CertificateParams, TlsError> {
    let mut names = names.to_vec();
    for always in ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"] {
        if !names.iter().any(|n| n == always) {
            names.push(always.into());
        }
    }
    let mut params = CertificateParams::new(names)?;
    params.subject_alt_names.extend(addresses.iter().map(|ip| SanType::IpAddress(*ip)));
    params.distinguished_name = named("granary");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    validity(&mut params, SERVING_DAYS);
    Ok(params)
}

fn read(path: &Path) -> Result<String, TlsError> {
    fs::read_to_string(path).map_err(|source| TlsError::File { path: path.into(), source })
}

/// Writes a file that only its owner can read, complete or not at all.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), TlsError> {
    let failed = |source| TlsError::File { path: path.into(), source };
    let temporary = path.with_extension("new");
    if temporary.exists() {
        fs::remove_file(&temporary).map_err(failed)?;
    }
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)?;
    if let Some(parent) = path.parent() {
        fs::File::open(parent).and_then(|dir| dir.sync_all()).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::os::unix::fs::PermissionsExt;

    use super::load_or_make;

    #[test]
    fn the_ca_is_made_once_and_its_key_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let local: IpAddr = [127, 0, 0, 1].into();
        let first = load_or_make(dir.path(), &["host".into()], &[local]).unwrap();
        let second = load_or_make(dir.path(), &["host".into()], &[local]).unwrap();
        assert_eq!(first.ca_pem, second.ca_pem);
        let mode = std::fs::metadata(dir.path().join("ca.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_damaged_ca_is_explained() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ca.crt"), "x").unwrap();
        std::fs::write(dir.path().join("ca.key"), "y").unwrap();
        let error = load_or_make(dir.path(), &[], &[]).err().unwrap().to_string();
        assert!(error.contains("delete that directory"), "{error}");
    }
}
