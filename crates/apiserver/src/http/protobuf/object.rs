//! One message to one JSON value, guided by the table.
//!
//! Owns how each protobuf type stands in JSON. Must never fail on a field it does not know.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::table::{Field, Id, Message, Shape, Table, Type};
use super::wire::{Content, Reader};
use super::{Fault, ProtobufError};

/// Messages inside messages; no Kubernetes object comes near.
const MAX_DEPTH: usize = 64;

/// The seconds of the time that Go takes for no time at all: the start of the year 1.
const NO_TIME: i64 = -62_135_596_800;

type Object = Map<String, Value>;
type Result<T, E = ProtobufError> = std::result::Result<T, E>;

/// Adds the fields of a message to an object. What is sent twice is merged as in one message: the last
/// scalar counts, lists and objects grow.
pub fn members(table: &Table, id: Id, bytes: &[u8], depth: usize, into: &mut Object) -> Result<()> {
    let message = table.message(id);
    let outside = |fault| ProtobufError::Field { message: message.name, field: "", fault };
    if depth > MAX_DEPTH {
        return Err(outside(Fault::TooDeep));
    }
    for field in Reader::new(bytes) {
        let (number, content) = field.map_err(outside)?;
        if let Some(field) = message.field(number) {
            Decoder { table, depth, message, field }.decode(content, into)?;
        }
    }
    Ok(())
}

/// One field of one message, at some depth of the object.
#[derive(Clone, Copy)]
struct Decoder<'t> {
    table: &'t Table,
    depth: usize,
    message: &'t Message,
    field: &'t Field,
}

impl Decoder<'_> {
    fn fault(self, fault: Fault) -> ProtobufError {
        ProtobufError::Field { message: self.message.name, field: self.field.name, fault }
    }

    fn decode(self, content: Content<'_>, into: &mut Object) -> Result<()> {
        let name = self.field.name;
        match (self.field.shape, self.field.of) {
            (Shape::Inline, Type::Message(id)) => self.inner(id, content, into),
            (Shape::List, _) => self.elements(content, list(into, name)),
            (Shape::Map, _) => self.entry(content, object(into, name)),
            (_, Type::Message(id)) if !self.table.message(id).transparent => {
                self.inner(id, content, object(into, name))
            }
            _ => {
                match self.value(content)? {
                    Some(value) if !(self.field.omit_zero && is_zero(&value)) => {
                        into.insert(name.into(), value)
                    }
                    _ => into.remove(name),
                };
                Ok(())
            }
        }
    }

    fn inner(self, id: Id, content: Content<'_>, into: &mut Object) -> Result<()> {
        let bytes = content.bytes().map_err(|fault| self.fault(fault))?;
        members(self.table, id, bytes, self.depth + 1, into)
    }

    /// One element, or many numbers in one run.
    fn elements(self, content: Content<'_>, list: &mut Vec<Value>) -> Result<()> {
        let of = self.field.of;
        let (Content::Bytes(run), Some(next)) = (content, packed(of)) else {
            list.push(self.value(content)?.unwrap_or_default());
            return Ok(());
        };
        let mut reader = Reader::new(run);
        while !reader.is_empty() {
            let value = next(&mut reader).and_then(|bits| number(of, bits));
            list.push(value.map_err(|fault| self.fault(fault))?);
        }
        Ok(())
    }

    fn entry(self, content: Content<'_>, map: &mut Object) -> Result<()> {
        let (mut key, mut value) = ("", None);
        let bytes = content.bytes().map_err(|fault| self.fault(fault))?;
        for part in Reader::new(bytes) {
            match part.map_err(|fault| self.fault(fault))? {
                (1, content) => key = content.text().map_err(|fault| self.fault(fault))?,
                (2, content) => value = self.value(content)?,
                _ => {}
            }
        }
        let value = value.or_else(|| self.unsent(self.field.of)).unwrap_or_default();
        map.insert(key.into(), value);
        Ok(())
    }

    /// The JSON of one value; `None` is `null`.
    fn value(self, content: Content<'_>) -> Result<Option<Value>> {
        let Type::Message(id) = self.field.of else {
            return scalar(self.field.of, content).map_err(|fault| self.fault(fault));
        };
        let mut object = Object::new();
        self.inner(id, content, &mut object)?;
        let message = self.table.message(id);
        Ok(if message.transparent { only_member(message, object) } else { Some(object.into()) })
    }

    /// What a map holds under a key that came without a value.
    fn unsent(self, of: Type) -> Option<Value> {
        let Type::Message(id) = of else { return zero(of) };
        let message = self.table.message(id);
        if message.transparent { only_member(message, Object::new()) } else { Some(Object::new().into()) }
    }
}

type Next<'a> = fn(&mut Reader<'a>) -> Result<u64, Fault>;

/// How the next number of a run is read, for types that come in runs.
fn packed<'a>(of: Type) -> Option<Next<'a>> {
    match of {
        Type::Bool | Type::Int32 | Type::Int64 => Some(Reader::varint),
        Type::Double => Some(Reader::fixed64),
        _ => None,
    }
}

/// The member that a transparent message stands for.
fn only_member(message: &Message, mut members: Object) -> Option<Value> {
    let sent = message.fields.iter().rev().find_map(|field| members.remove(field.name));
    sent.or_else(|| match message.fields.first()? {
        Field { shape: Shape::List, .. } => Some(Value::Array(Vec::new())),
        first => zero(first.of),
    })
}

fn zero(of: Type) -> Option<Value> {
    match of {
        Type::String | Type::Bytes => Some("".into()),
        Type::Bool => Some(false.into()),
        Type::Int32 | Type::Int64 | Type::Double | Type::IntOrString => Some(0.into()),
        Type::Json | Type::Time | Type::MicroTime | Type::Message(_) => None,
    }
}

fn scalar(of: Type, content: Content<'_>) -> Result<Option<Value>, Fault> {
    match of {
        Type::String => content.text().map(|text| Some(text.into())),
        Type::Bool | Type::Int32 | Type::Int64 => number(of, content.varint()?).map(Some),
        Type::Double => number(of, content.double()?.to_bits()).map(Some),
        Type::Bytes => content.bytes().map(|bytes| Some(STANDARD.encode(bytes).into())),
        Type::Json => match content.bytes()? {
            [] => Ok(None),
            text => serde_json::from_slice(text).map(Some).map_err(|error| Fault::Json(error.to_string())),
        },
        Type::Time => time(content.bytes()?, false),
        Type::MicroTime => time(content.bytes()?, true),
        Type::IntOrString => int_or_string(content.bytes()?).map(Some),
        Type::Message(_) => Ok(None),
    }
}

fn number(of: Type, bits: u64) -> Result<Value, Fault> {
    match of {
        Type::Bool => Ok((bits != 0).into()),
        Type::Int32 => Ok((bits as i32).into()),
        Type::Double => double(f64::from_bits(bits)),
        _ => Ok((bits as i64).into()),
    }
}

/// Whole numbers stand in JSON without a point.
fn double(value: f64) -> Result<Value, Fault> {
    let whole = value as i64;
    if whole as f64 == value && whole != i64::MAX {
        return Ok(whole.into());
    }
    serde_json::Number::from_f64(value).map(Value::Number).ok_or(Fault::NotANumber)
}

/// `Timestamp{seconds=1, nanos=2}`; an empty one is no time. JSON knows whole seconds or microseconds.
fn time(bytes: &[u8], micro: bool) -> Result<Option<Value>, Fault> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in Reader::new(bytes) {
        match field? {
            (1, content) => seconds = content.varint()? as i64,
            (2, content) if micro => nanos = content.varint()? as i32 / 1000 * 1000,
            (2, content) => drop(content.varint()?),
            _ => {}
        }
    }
    if bytes.is_empty() || (seconds, nanos) == (NO_TIME, 0) {
        return Ok(None);
    }
    let time = Timestamp::new(seconds, nanos).map_err(|_| Fault::Time)?;
    if seconds < NO_TIME {
        return Err(Fault::Time);
    }
    let format = if micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(Some(time.strftime(format).to_string().into()))
}

/// `IntOrString{type=1, intVal=2, strVal=3}`.
fn int_or_string(bytes: &[u8]) -> Result<Value, Fault> {
    let (mut kind, mut int, mut text) = (0, 0, "");
    for field in Reader::new(bytes) {
        match field? {
            (1, content) => kind = content.varint()?,
            (2, content) => int = content.varint()? as i32,
            (3, content) => text = content.text()?,
            _ => {}
        }
    }
    match kind {
        0 => Ok(int.into()),
        1 => Ok(text.into()),
        other => Err(Fault::IntOrString(other)),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        _ => false,
    }
}

/// The list of that name, made if there is none.
fn list<'m>(into: &'m mut Object, name: &str) -> &'m mut Vec<Value> {
    let value = into.entry(name).or_insert_with(|| Value::Array(Vec::new()));
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().expect("it was just made a list")
}

/// The object of that name, made if there is none.
fn object<'m>(into: &'m mut Object, name: &str) -> &'m mut Object {
    let value = into.entry(name).or_insert_with(|| Value::Object(Object::new()));
    if !value.is_object() {
        *value = Value::Object(Object::new());
    }
    value.as_object_mut().expect("it was just made an object")
}
