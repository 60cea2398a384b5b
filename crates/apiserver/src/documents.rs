//! OpenAPI documents, made when somebody asks and kept while they are current.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::openapi;
use crate::registry::Registry;

/// One document as it goes out.
pub struct Document {
    pub bytes: Bytes,
    pub content_type: &'static str,
    pub etag: String,
}

#[derive(Default)]
pub struct Documents(Mutex<Cache>);

#[derive(Default)]
struct Cache {
    /// The state of the registry that the documents describe.
    generation: u64,
    made: HashMap<String, Arc<Document>>,
}

const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

impl Documents {
    /// The document at a path below `/openapi/`.
    pub fn get(&self, registry: &Registry, path: &str, accept: &str) -> Option<Arc<Document>> {
        let table = registry.table();
        let mut cache = self.0.lock();
        if cache.generation != table.generation {
            *cache = Cache { generation: table.generation, ..Cache::default() };
        }
        let protobuf = path == "v2" && accept.contains(PROTOBUF);
        let name = if protobuf { format!("{path}#protobuf") } else { path.to_string() };
        if let Some(known) = cache.made.get(&name) {
            return Some(known.clone());
        }
        let (bytes, content_type) = openapi::document(&table, path, protobuf)?;
        let document = Arc::new(Document { etag: etag(&bytes), bytes, content_type });
        cache.made.insert(name, document.clone());
        Some(document)
    }
}

fn etag(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(bytes);
    let hex: String = digest.iter().take(16).map(|b| format!("{b:02X}")).collect();
    format!("\"{hex}\"")
}
