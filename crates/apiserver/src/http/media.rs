//! Content types: what a client sends, what it wants back, and reading bodies strictly.
//!
//! Must never interpret an object beyond the text or bytes it was written in.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::protobuf;
use crate::error::{ApiError, Result};

/// `v1` for the core group, `group/version` otherwise.
pub fn apiversion(group: &str, version: &str) -> String {
    if group.is_empty() { version.into() } else { format!("{group}/{version}") }
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    #[default]
    Json,
    Yaml,
}

/// What an answer shows of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum View {
    #[default]
    Object,
    Table,
    PartialMetadata,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accept {
    pub encoding: Encoding,
    pub view: View,
    /// Aggregated discovery was asked for.
    pub aggregated: bool,
}

impl Accept {
    /// The first offer of the client that we can meet.
    pub fn of(headers: &HeaderMap) -> Result<Self> {
        let Some(text) = headers.get(ACCEPT).and_then(|v| v.to_str().ok()) else {
            return Ok(Self::default());
        };
        text.split(',').find_map(Self::offer).ok_or_else(|| ApiError::not_acceptable(text))
    }

    fn offer(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let encoding = match parts.next()? {
            "application/json" | "*/*" | "application/*" | "" => Encoding::Json,
            "application/yaml" | "text/yaml" => Encoding::Yaml,
            _ => return None,
        };
        let mut accept = Self { encoding, ..Self::default() };
        for parameter in parts {
            match parameter.split_once('=') {
                Some(("as", "Table")) => accept.view = View::Table,
                Some(("as", "PartialObjectMetadata" | "PartialObjectMetadataList")) => {
                    accept.view = View::PartialMetadata;
                }
                Some(("as", "APIGroupDiscoveryList")) => accept.aggregated = true,
                Some(("as", _)) => return None,
                // Only the current versions of tables and of aggregated discovery are written.
                Some(("v", version)) if !matches!(version, "v1" | "v2") => return None,
                _ => {}
            }
        }
        Some(accept)
    }
}

/// The media type of a body, without parameters; JSON when the client names none.
pub fn content_type(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("application/json");
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A decoded body, with the paths of fields that occurred twice.
#[derive(Debug, Default)]
pub struct Decoded {
    pub value: Value,
    pub duplicates: Vec<String>,
}

/// The media types of objects that are read.
const MEDIA_TYPES: &[&str] = &["application/json", "application/yaml", protobuf::MEDIA_TYPE];

/// Decodes an object that was sent as JSON, YAML or protobuf.
pub fn decode(content_type: &str, body: &[u8]) -> Result<Decoded> {
    match content_type {
        "application/json" | "" => decode_json(body),
        "application/yaml" | "text/yaml" | "application/x-yaml" => decode_yaml(body),
        protobuf::MEDIA_TYPE => decode_protobuf(body),
        _ => Err(ApiError::unsupported_media_type(MEDIA_TYPES)),
    }
}

pub fn decode_json(body: &[u8]) -> Result<Decoded> {
    let mut duplicates = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(body);
    let node = Node { path: Path::Root, duplicates: &mut duplicates };
    let value = node
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|e| ApiError::bad_request(format!("the request body is not valid JSON: {e}")))?;
    Ok(Decoded { value, duplicates })
}

pub fn decode_yaml(body: &[u8]) -> Result<Decoded> {
    let bad = |e: String| ApiError::bad_request(format!("error decoding YAML: {e}"));
    let text = std::str::from_utf8(body).map_err(|e| bad(e.to_string()))?;
    // JSON is YAML, and much faster to read as JSON.
    if text.trim_start().starts_with('{')
        && let Ok(decoded) = decode_json(body)
    {
        return Ok(decoded);
    }
    on_a_deep_stack(|| {
        let mut duplicates = Vec::new();
        let node = Node { path: Path::Root, duplicates: &mut duplicates };
        let value = serde_saphyr::with_deserializer_from_str_with_options(text, yaml_options(), |reader| {
            node.deserialize(reader)
        })
        // The rest of the message shows the lines of the body again.
        .map_err(|e| bad(e.to_string().lines().next().unwrap_or_default().to_string()))?;
        Ok(Decoded { value, duplicates })
    })
}

/// Repeated members are noted, not refused, and as much nesting is read as JSON may have.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        budget: serde_saphyr::budget! { max_depth: 127 },
    }
}

/// Room for the deepest document; only what is used of it takes memory.
const YAML_STACK: usize = 16 << 20;

/// The YAML parser needs far more stack for a level than that of JSON does, more than a worker of an
/// asynchronous runtime has. YAML that is not JSON is rare enough for a thread of its own.
fn on_a_deep_stack<T: Send>(read: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("yaml".into()).stack_size(YAML_STACK);
        let reader = thread.spawn_scoped(scope, read);
        let reader = reader.map_err(|e| ApiError::internal(format!("no thread to read YAML: {e}")))?;
        reader.join().unwrap_or_else(|_| Err(ApiError::bad_request("the YAML cannot be read")))
    })
}

/// Repeated members that are told of; a body can hold a million of them.
const MAX_DUPLICATES: usize = 32;

/// Where in a document something is. Written out only when somebody asks: most of the time nobody does, and
/// a long key above a long list would be copied for every element.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Member(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl std::fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(Self::Root, name) => f.write_str(name),
            Self::Member(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, at) => write!(f, "{parent}[{at}]"),
        }
    }
}

fn decode_protobuf(body: &[u8]) -> Result<Decoded> {
    let value = protobuf::decode(body).map_err(|e| {
        ApiError::bad_request(format!("the request body is not a valid protobuf object: {e}"))
    })?;
    Ok(Decoded { value, duplicates: Vec::new() })
}

/// Reads one JSON value and notes repeated members on the way; the last one counts.
struct Node<'a> {
    path: Path<'a>,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> std::result::Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, v: bool) -> std::result::Result<Value, E> {
        Ok(v.into())
    }

    fn visit_i64<E>(self, v: i64) -> std::result::Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> std::result::Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E>(self, v: f64) -> std::result::Result<Value, E> {
        Ok(v.into())
    }

    fn visit_str<E>(self, v: &str) -> std::result::Result<Value, E> {
        Ok(v.into())
    }

    fn visit_string<E>(self, v: String) -> std::result::Result<Value, E> {
        Ok(v.into())
    }

    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = Path::Item(&self.path, list.len());
            match seq.next_element_seed(Node { path, duplicates: self.duplicates })? {
                Some(value) => list.push(value),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> std::result::Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let path = Path::Member(&self.path, &key);
            if map.contains_key(&key) && self.duplicates.len() < MAX_DUPLICATES {
                self.duplicates.push(path.to_string());
            }
            let value = members.next_value_seed(Node { path, duplicates: self.duplicates })?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::{Accept, Encoding, View, decode, decode_json};

    fn accept(text: &'static str) -> Option<Accept> {
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static(text));
        Accept::of(&headers).ok()
    }

    #[test]
    fn the_first_offer_we_can_meet_is_taken() {
        let kubectl = accept("application/json;as=Table;v=v1;g=meta.k8s.io,application/json").unwrap();
        assert_eq!((kubectl.encoding, kubectl.view), (Encoding::Json, View::Table));
        let client_go = accept("application/vnd.kubernetes.protobuf,application/json").unwrap();
        assert_eq!(client_go, Accept::default());
        assert_eq!(accept("application/vnd.kubernetes.protobuf, */*").unwrap(), Accept::default());
        assert_eq!(accept("application/vnd.kubernetes.protobuf"), None);
        assert!(
            accept("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
                .unwrap()
                .aggregated
        );
    }

    #[test]
    fn a_member_that_occurs_twice_is_noted_with_its_path() {
        let decoded = decode_json(br#"{"spec":{"a":1,"l":[{"b":1,"b":2}],"a":2}}"#).unwrap();
        assert_eq!(decoded.duplicates, ["spec.l[0].b", "spec.a"]);
        assert_eq!(decoded.value["spec"]["a"], 2);
        let yaml = decode("application/yaml", b"spec:\n  a: 1\n  a: 2\n").unwrap();
        assert_eq!((yaml.duplicates, &yaml.value["spec"]["a"]), (vec!["spec.a".into()], &2.into()));
    }

    #[test]
    fn nesting_ends_long_before_the_stack_does() {
        let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        let block: String = (0..1000).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
        let bodies = [deep("[", "]"), deep("{\"a\":", "}"), deep("- ", ""), deep("? ", ""), block];
        let read = move || {
            for body in bodies {
                assert!(decode("application/json", body.as_bytes()).is_err());
                assert!(decode("application/yaml", body.as_bytes()).is_err());
            }
            for (open, close) in [("[", "]"), ("{a: ", "}")] {
                let shallow = format!("{}1{}", open.repeat(120), close.repeat(120));
                decode("application/yaml", shallow.as_bytes()).unwrap();
            }
        };
        // Half of what a thread of the server has.
        std::thread::Builder::new().stack_size(1 << 20).spawn(read).unwrap().join().unwrap();
    }

    #[test]
    fn a_long_key_above_a_long_list_costs_no_more_than_its_length() {
        let body = format!(r#"{{"{}":[{}0]}}"#, "k".repeat(1 << 20), "0,".repeat(1 << 20));
        assert_eq!(decode_json(body.as_bytes()).unwrap().duplicates, Vec::<String>::new());
        let body = format!("{{{}\"a\":0}}", "\"a\":0,".repeat(1 << 18));
        assert_eq!(decode_json(body.as_bytes()).unwrap().duplicates.len(), super::MAX_DUPLICATES);
    }

    #[test]
    fn garbage_is_a_bad_request_and_an_odd_type_is_unsupported() {
        assert_eq!(decode("application/json", b"{\"a\":").unwrap_err().code, 400);
        assert_eq!(decode("application/json", b"{} {}").unwrap_err().code, 400);
        assert_eq!(decode("application/yaml", b"a: [").unwrap_err().code, 400);
        assert_eq!(decode("application/vnd.kubernetes.protobuf", b"{}").unwrap_err().code, 400);
        let unsupported = decode("text/csv", b"a").unwrap_err();
        assert_eq!(unsupported.code, 415);
        assert!(unsupported.message.contains("application/vnd.kubernetes.protobuf"), "{unsupported}");
        assert_eq!(decode("application/yaml", b"a: 1").unwrap().value["a"], 1);
    }
}
