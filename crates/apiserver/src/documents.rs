//! OpenAPI documents, made when somebody asks and kept while they are current.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use crate::openapi::{self, Described};
use crate::registry::{self, Registry, Resource, Table};

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

impl Documents {
    /// The document at a path below `/openapi/`.
    pub fn get(&self, registry: &Registry, path: &str, accept: &str) -> Option<Arc<Document>> {
        let table = registry.table();
        let mut cache = self.0.lock();
        if cache.generation != table.generation {
            *cache = Cache { generation: table.generation, ..Cache::default() };
        }
        let protobuf = path == "v2" && openapi::V2_PROTOBUF_ACCEPT.iter().any(|kind| accept.contains(kind));
        let name = if protobuf { format!("{path}#protobuf") } else { path.to_string() };
        if let Some(known) = cache.made.get(&name) {
            return Some(known.clone());
        }
        let (bytes, content_type) = make(&table, path, protobuf)?;
        let document = Arc::new(Document { etag: etag(&bytes), bytes, content_type });
        cache.made.insert(name, document.clone());
        Some(document)
    }
}

fn make(table: &Table, path: &str, protobuf: bool) -> Option<(Bytes, &'static str)> {
    let kinds: Vec<Described<'_>> = table.all().map(|resource| described(resource)).collect();
    let json = |value: Value| (Bytes::from(value.to_string()), "application/json");
    match path.trim_end_matches('/') {
        "v2" if protobuf => {
            let document = openapi::v2_document(&kinds);
            Some((openapi::v2_protobuf(&document).into(), openapi::V2_PROTOBUF_TYPE))
        }
        "v2" => Some(json(openapi::v2_document(&kinds))),
        "v3" => Some(json(openapi::v3_index(&kinds))),
        other => openapi::v3_document(other.strip_prefix("v3/")?, &kinds).map(json),
    }
}

fn described(resource: &Resource) -> Described<'_> {
    match &resource.source {
        registry::Source::Builtin(kind) => Described::builtin(kind),
        registry::Source::Custom(custom) => Described {
            group: resource.group.as_str().into(),
            version: resource.version.as_str().into(),
            kind: resource.kind.as_str().into(),
            list_kind: resource.list_kind.as_str().into(),
            plural: resource.plural.as_str().into(),
            namespaced: resource.namespaced,
            has_status: resource.has_status,
            has_scale: resource.scale.is_some(),
            create_only: false,
            source: openapi::Source::Crd((!custom.open_api.is_null()).then_some(&*custom.open_api)),
        },
    }
}

fn etag(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(bytes);
    let hex: String = digest.iter().take(16).map(|b| format!("{b:02X}")).collect();
    format!("\"{hex}\"")
}
