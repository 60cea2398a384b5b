//! Objects in an S3-compatible bucket.
//! Must never take credentials, proxies or endpoints from the process environment.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use jiff::Timestamp;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{HttpClient, HttpConnector};
use object_store::path::Path;
use object_store::{ClientOptions, Error as ObjectError, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode};
use rustls::crypto::ring::default_provider;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;

use super::open::OpenError;
use super::{Entry, Listing, Store, StoreError};
use crate::credentials::{Credentials, InvalidCredentials};
use crate::url::{TargetKind, TargetUrl};

/// What servers that know no regions expect in a signature.
const DEFAULT_REGION: &str = "us-east-1";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The list of a large volume's blocks is hundreds of megabytes in one request.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(10);

#[derive(Debug)]
pub struct S3Store {
    bucket: AmazonS3,
    /// Empty or ending in a slash.
    prefix: String,
}

impl S3Store {
    pub fn open(target: &TargetUrl, credentials: &Credentials) -> Result<Self, OpenError> {
        let TargetKind::S3 { bucket, region, prefix } = target.kind() else {
            return Err(client_error(target, "it is not an s3:// URL"));
        };
        let endpoint = credentials.get("AWS_ENDPOINTS");
        // As Longhorn decides it: the path style is for servers of one's own, unless said otherwise.
        let virtual_hosted = credentials.boolean("VIRTUAL_HOSTED_STYLE")?.unwrap_or(endpoint.is_none());
        let client = http_client(target, credentials)?;
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(region.as_deref().unwrap_or(DEFAULT_REGION))
            .with_access_key_id(credentials.require("AWS_ACCESS_KEY_ID")?)
            .with_secret_access_key(credentials.require("AWS_SECRET_ACCESS_KEY")?)
            .with_virtual_hosted_style_request(virtual_hosted)
            .with_allow_http(true)
            // Not every server knows it, and those that do gain little here.
            .with_disable_bulk_delete(true)
            .with_http_connector(Connector(client));
        if let Some(endpoint) = endpoint {
            builder = builder.with_endpoint(service_url(endpoint, bucket, virtual_hosted));
        }
        let bucket = builder.build().map_err(|error| client_error(target, error))?;
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Ok(Self { bucket, prefix })
    }

    fn path(&self, operation: &'static str, key: &str) -> Result<Path, StoreError> {
        Path::parse(format!("{}{key}", self.prefix)).map_err(|error| StoreError::new(operation, key, error))
    }

    fn entry(&self, meta: ObjectMeta) -> Entry {
        let key = meta.location.as_ref();
        Entry {
            key: key.strip_prefix(&self.prefix).unwrap_or(key).to_owned(),
            size: meta.size,
            modified: Timestamp::from_millisecond(meta.last_modified.timestamp_millis())
                .unwrap_or(Timestamp::MIN),
            // Not every server tells an entity tag.
            version: format!("{} {}", meta.last_modified.timestamp_millis(), meta.e_tag.unwrap_or_default()),
        }
    }
}

/// With the bucket in the host name, the library wants it in the endpoint; stored endpoints are without.
fn service_url(endpoint: &str, bucket: &str, virtual_hosted: bool) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    match endpoint.split_once("://") {
        Some((scheme, host)) if virtual_hosted && !host.starts_with(&format!("{bucket}.")) => {
            format!("{scheme}://{bucket}.{host}")
        }
        _ => endpoint.to_owned(),
    }
}

#[async_trait]
impl Store for S3Store {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let path = self.path("read", key)?;
        let result = async { self.bucket.get(&path).await?.bytes().await };
        present(result.await).map_err(|error| StoreError::new("read", key, error))
    }

    async fn head(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        let path = self.path("look at", key)?;
        match present(self.bucket.head(&path).await) {
            Ok(meta) => Ok(meta.map(|meta| self.entry(meta))),
            Err(error) => Err(StoreError::new("look at", key, error)),
        }
    }

    async fn put(&self, key: &str, data: Bytes) -> Result<(), StoreError> {
        let path = self.path("write", key)?;
        self.bucket.put(&path, data.into()).await.map_err(|error| StoreError::new("write", key, error))?;
        Ok(())
    }

    async fn put_if_absent(&self, key: &str, data: Bytes) -> Result<bool, StoreError> {
        let path = self.path("create", key)?;
        match self.bucket.put_opts(&path, data.clone().into(), PutMode::Create.into()).await {
            Ok(_) => Ok(true),
            Err(ObjectError::AlreadyExists { .. } | ObjectError::Precondition { .. }) => Ok(false),
            Err(ObjectError::NotImplemented { .. } | ObjectError::NotSupported { .. }) => {
                if self.head(key).await?.is_some() {
                    return Ok(false);
                }
                self.put(key, data).await.map(|()| true)
            }
            Err(error) => Err(StoreError::new("create", key, error)),
        }
    }

    async fn list(&self, directory: &str) -> Result<Listing, StoreError> {
        let path = self.path("list", directory)?;
        let found = self.bucket.list_with_delimiter(Some(&path)).await;
        let found = found.map_err(|error| StoreError::new("list", directory, error))?;
        Ok(Listing {
            objects: found.objects.into_iter().map(|meta| self.entry(meta)).collect(),
            directories: found
                .common_prefixes
                .iter()
                .filter_map(|path| path.filename().map(str::to_owned))
                .collect(),
        })
    }

    fn walk(&self, directory: &str) -> BoxStream<'_, Result<Entry, StoreError>> {
        let directory = directory.to_owned();
        match self.path("list", &directory) {
            Err(error) => futures::stream::iter([Err(error)]).boxed(),
            Ok(path) => {
                let found = self.bucket.list(Some(&path));
                let entry = move |meta: Result<ObjectMeta, ObjectError>| match meta {
                    Ok(meta) => Ok(self.entry(meta)),
                    Err(error) => Err(StoreError::new("list", directory.as_str(), error)),
                };
                found.map(entry).boxed()
            }
        }
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        let path = self.path("delete", key)?;
        match present(self.bucket.delete(&path).await) {
            Ok(_) => Ok(()),
            Err(error) => Err(StoreError::new("delete", key, error)),
        }
    }
}

fn present<T>(result: Result<T, ObjectError>) -> Result<Option<T>, ObjectError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(ObjectError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Hands the library the client that was made from this request's credentials.
#[derive(Debug)]
struct Connector(reqwest::Client);

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}

fn client_error(
    target: &TargetUrl,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> OpenError {
    OpenError::Client { target: target.clone(), source: source.into() }
}

fn http_client(target: &TargetUrl, credentials: &Credentials) -> Result<reqwest::Client, OpenError> {
    let mut builder = reqwest::Client::builder()
        // Otherwise the environment's proxies are used.
        .no_proxy()
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(REQUEST_TIMEOUT)
        .tls_backend_preconfigured(tls(target, credentials)?);
    for proxy in proxies(credentials)? {
        builder = builder.proxy(proxy);
    }
    builder.build().map_err(|error| client_error(target, error))
}

fn proxies(credentials: &Credentials) -> Result<Vec<reqwest::Proxy>, InvalidCredentials> {
    type Make = fn(&str) -> reqwest::Result<reqwest::Proxy>;
    let kinds: [(&'static str, Make); 2] =
        [("HTTP_PROXY", |url| reqwest::Proxy::http(url)), ("HTTPS_PROXY", |url| reqwest::Proxy::https(url))];
    let mut proxies = Vec::new();
    for (key, make) in kinds {
        if let Some(url) = credentials.get(key) {
            let proxy = make(url).map_err(|_| InvalidCredentials::Proxy { key })?;
            let except = credentials.get("NO_PROXY").and_then(reqwest::NoProxy::from_string);
            proxies.push(proxy.no_proxy(except));
        }
    }
    Ok(proxies)
}

/// The system's roots and the ones that the request brings.
fn tls(target: &TargetUrl, credentials: &Credentials) -> Result<rustls::ClientConfig, OpenError> {
    let provider = Arc::new(default_provider());
    let pem = credentials.get("AWS_CERT").unwrap_or_default();
    let extra = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| InvalidCredentials::Certificate(error.to_string()))?;
    if extra.is_empty() && !pem.is_empty() {
        return Err(InvalidCredentials::Certificate("no certificate found".into()).into());
    }
    let verifier = Verifier::new_with_extra_roots(extra, provider.clone())
        .map_err(|error| client_error(target, error))?;
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| client_error(target, error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::{S3Store, service_url};
    use crate::credentials::{Credentials, InvalidCredentials};
    use crate::store::OpenError;

    fn open(entries: &[&str]) -> Result<S3Store, OpenError> {
        let credentials = Credentials::from_entries(entries.iter().copied()).unwrap();
        S3Store::open(&"s3://bucket@region/prefix".parse().unwrap(), &credentials)
    }

    const KEYS: [&str; 2] = ["AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b"];

    #[test]
    fn keys_have_to_be_in_the_request() {
        let missing = open(&KEYS[..1]).unwrap_err();
        assert!(matches!(
            missing,
            OpenError::Credentials(InvalidCredentials::Missing("AWS_SECRET_ACCESS_KEY"))
        ));
        assert!(open(&KEYS).is_ok());
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        for entry in ["AWS_CERT=no pem", "VIRTUAL_HOSTED_STYLE=maybe", "HTTPS_PROXY=::::"] {
            let refused = open(&[KEYS[0], KEYS[1], entry]);
            assert!(matches!(refused, Err(OpenError::Credentials(_))), "{entry}");
        }
    }

    #[test]
    fn the_bucket_goes_where_the_style_wants_it() {
        assert_eq!(service_url("http://h:9000/", "b", false), "http://h:9000");
        assert_eq!(service_url("http://h:9000", "b", true), "http://b.h:9000");
        assert_eq!(service_url("https://b.h", "b", true), "https://b.h");
    }
}
