//! Addresses of the API: collections and objects as paths, options as a query.
//! Builds requests only; sending them is the session's work.

use http::{Method, Request, header};
use serde_json::Value;

use crate::{
    error::{CliError, Result},
    kinds::Kind,
};

/// Asks for rows and columns; a server that cannot answers with plain objects.
pub const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// A path with its options, written piece by piece.
#[derive(Debug, Clone)]
pub struct Address {
    text: String,
    has_query: bool,
}

impl Address {
    /// Any path of the API, such as `/version`.
    pub fn path(path: &str) -> Self {
        Self { text: path.into(), has_query: false }
    }

    /// All objects of a kind, in one namespace or, with `None`, everywhere.
    pub fn collection(kind: &Kind, namespace: Option<&str>) -> Self {
        let root = if kind.group.is_empty() { "/api".into() } else { format!("/apis/{}", kind.group) };
        let text = match namespace.filter(|_| kind.namespaced) {
            Some(namespace) => {
                format!("{root}/{}/namespaces/{}/{}", kind.version, encode(namespace), kind.plural)
            }
            None => format!("{root}/{}/{}", kind.version, kind.plural),
        };
        Self { text, has_query: false }
    }

    pub fn object(kind: &Kind, namespace: Option<&str>, name: &str) -> Self {
        let mut address = Self::collection(kind, namespace);
        address.text.push('/');
        address.text.push_str(&encode(name));
        address
    }

    /// Adds one option.
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.text.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.text.push_str(key);
        self.text.push('=');
        self.text.push_str(&encode(value));
        self
    }

    /// Adds an option that may be absent.
    pub fn with_some(self, key: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    pub fn get(&self) -> Result<Request<Vec<u8>>> {
        self.request(Method::GET, "application/json", None)
    }

    pub fn get_as(&self, accept: &str) -> Result<Request<Vec<u8>>> {
        self.request(Method::GET, accept, None)
    }

    pub fn delete(&self, options: &Value) -> Result<Request<Vec<u8>>> {
        self.request(Method::DELETE, "application/json", Some(("application/json", options)))
    }

    /// A server-side apply; JSON is YAML, so the object needs no other form.
    pub fn apply(&self, object: &Value) -> Result<Request<Vec<u8>>> {
        self.request(Method::PATCH, "application/json", Some(("application/apply-patch+yaml", object)))
    }

    fn request(
        &self,
        method: Method,
        accept: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Request<Vec<u8>>> {
        let mut request = Request::builder().method(method).uri(&self.text).header(header::ACCEPT, accept);
        let bytes = match body {
            Some((media_type, value)) => {
                request = request.header(header::CONTENT_TYPE, media_type);
                value.to_string().into_bytes()
            }
            None => Vec::new(),
        };
        request.body(bytes).map_err(|error| CliError::Usage(format!("{}: {error}", self.text)))
    }
}

/// Percent-encodes everything but unreserved characters; `.` and `..` cannot leave the collection.
fn encode(text: &str) -> String {
    if text.chars().all(|c| c == '.') {
        return "%2E".repeat(text.len());
    }
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::kind;

    #[test]
    fn every_kind_has_its_place() {
        let pods = kind("", "v1", "Pod", "pods", &[]);
        let volumes = kind("longhorn.io", "v1beta2", "Volume", "volumes", &[]);
        let mut classes = kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", &[]);
        classes.namespaced = false;
        let text = |address: Address| address.text;

        assert_eq!(text(Address::collection(&pods, None)), "/api/v1/pods");
        assert_eq!(text(Address::object(&pods, Some("lab"), "a")), "/api/v1/namespaces/lab/pods/a");
        assert_eq!(
            text(Address::collection(&volumes, Some("lab"))),
            "/apis/longhorn.io/v1beta2/namespaces/lab/volumes"
        );
        assert_eq!(
            text(Address::object(&classes, Some("lab"), "fast")),
            "/apis/storage.k8s.io/v1/storageclasses/fast",
            "a kind without namespaces ignores the namespace"
        );
    }

    #[test]
    fn what_people_type_cannot_change_the_path() {
        let pods = kind("", "v1", "Pod", "pods", &[]);
        let address =
            Address::object(&pods, Some("a/b"), "../secrets?x=1").with("labelSelector", "a in (b, c)");
        assert_eq!(
            address.text,
            "/api/v1/namespaces/a%2Fb/pods/..%2Fsecrets%3Fx%3D1?labelSelector=a%20in%20%28b%2C%20c%29"
        );
        assert!(Address::object(&pods, Some("a"), "..").text.ends_with("/%2E%2E"));
        let two = Address::path("/api").with("a", "1").with_some("b", None).with_some("c", Some("2"));
        assert_eq!(two.text, "/api?a=1&c=2");
    }
}
