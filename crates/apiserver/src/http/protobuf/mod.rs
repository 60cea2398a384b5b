//! Objects of built-in kinds as typed clients send them: Kubernetes' protobuf form, turned into JSON.
//!
//! Owns the envelope around an object. Must never let a hostile body do more than be refused.
//!
//! The answer is the JSON that the same client would have sent, except that a member that would be `null` is
//! absent. Answers are always written as JSON or YAML, which every client accepts.

mod object;
mod table;
#[cfg(test)]
mod tests;
mod wire;

use serde_json::{Map, Value};
use thiserror::Error;

use table::TABLE;
use wire::Reader;

/// The media type of the form.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What every body starts with.
const PREFIX: &[u8] = b"k8s\0";

/// Why a body was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProtobufError {
    #[error("it does not start with the bytes 6b 38 73 00")]
    Prefix,
    #[error("the envelope: {0}")]
    Envelope(Fault),
    #[error("it does not say its apiVersion and kind")]
    NoKind,
    #[error("no kind {kind:?} of version {api_version:?} has a protobuf form here")]
    UnknownKind { api_version: String, kind: String },
    #[error("its object is in the form {0:?}")]
    Form(String),
    #[error("{message}{}{field}: {fault}", if field.is_empty() { "" } else { "." })]
    Field { message: &'static str, field: &'static str, fault: Fault },
}

/// What is wrong with one message or field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    #[error("it ends early")]
    Truncated,
    #[error("an integer is longer than 10 bytes")]
    LongVarint,
    #[error("a tag names no field or no wire type")]
    Tag,
    #[error("wire type {got} was sent where {wanted} belongs")]
    WireType { got: u8, wanted: &'static str },
    #[error("messages are nested too deeply")]
    TooDeep,
    #[error("the text is not UTF-8")]
    Utf8,
    #[error("the embedded JSON cannot be read: {0}")]
    Json(String),
    #[error("the time cannot be written with a year of four digits")]
    Time,
    #[error("the value is not a finite number")]
    NotANumber,
    #[error("type {0} is neither a number nor a string")]
    IntOrString(u64),
}

/// The object inside a body as JSON.
pub fn decode(body: &[u8]) -> Result<Value, ProtobufError> {
    let envelope = Envelope::read(body.strip_prefix(PREFIX).ok_or(ProtobufError::Prefix)?)?;
    let Envelope { api_version, kind, raw, .. } = envelope;
    if api_version.is_empty() || kind.is_empty() {
        return Err(ProtobufError::NoKind);
    }
    if let Some(form) = envelope.other_form() {
        return Err(ProtobufError::Form(form.into()));
    }
    let message = TABLE
        .kind(api_version, kind)
        .ok_or_else(|| ProtobufError::UnknownKind { api_version: api_version.into(), kind: kind.into() })?;
    let mut object = Map::new();
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), kind.into());
    object::members(&TABLE, message, raw, 1, &mut object)?;
    Ok(Value::Object(object))
}

/// `Unknown{typeMeta=1{apiVersion=1, kind=2}, raw=2, contentEncoding=3, contentType=4}`.
#[derive(Default)]
struct Envelope<'a> {
    api_version: &'a str,
    kind: &'a str,
    raw: &'a [u8],
    content_encoding: &'a str,
    content_type: &'a str,
}

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, ProtobufError> {
        let mut envelope = Self::default();
        envelope.fill(bytes).map_err(ProtobufError::Envelope)?;
        Ok(envelope)
    }

    fn fill(&mut self, bytes: &'a [u8]) -> Result<(), Fault> {
        for field in Reader::new(bytes) {
            match field? {
                (1, content) => self.type_meta(content.bytes()?)?,
                (2, content) => self.raw = content.bytes()?,
                (3, content) => self.content_encoding = content.text()?,
                (4, content) => self.content_type = content.text()?,
                _ => {}
            }
        }
        Ok(())
    }

    fn type_meta(&mut self, bytes: &'a [u8]) -> Result<(), Fault> {
        for field in Reader::new(bytes) {
            match field? {
                (1, content) => self.api_version = content.text()?,
                (2, content) => self.kind = content.text()?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The name of a form that the object is in instead of plain protobuf.
    fn other_form(&self) -> Option<&'a str> {
        if !self.content_encoding.is_empty() {
            return Some(self.content_encoding);
        }
        (!["", MEDIA_TYPE].contains(&self.content_type)).then_some(self.content_type)
    }
}
