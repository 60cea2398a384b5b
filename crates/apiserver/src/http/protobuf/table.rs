//! What is known about the messages: read once from `fields.txt`, then looked up by number.
//!
//! Owns the shape of that file. Must never grow with what clients send.

use std::collections::HashMap;
use std::sync::LazyLock;

static TEXT: &str = include_str!("fields.txt");

pub static TABLE: LazyLock<Table> = LazyLock::new(|| {
    Table::parse(TEXT).expect("the table is part of the program and is parsed by its tests")
});

pub struct Table {
    messages: Vec<Message>,
    kinds: Vec<Root>,
}

/// The index of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id(u16);

#[derive(Debug)]
pub struct Message {
    pub name: &'static str,
    /// Its JSON is that of one member, not an object.
    pub transparent: bool,
    /// Ordered by number.
    pub fields: Box<[Field]>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    /// The name in JSON.
    pub name: &'static str,
    pub number: u32,
    pub shape: Shape,
    pub of: Type,
    /// A zero is left out of JSON.
    pub omit_zero: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    One,
    List,
    Map,
    /// Members of the outer object.
    Inline,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    String,
    Bool,
    Int32,
    Int64,
    Double,
    Bytes,
    /// Bytes that hold JSON text.
    Json,
    Time,
    MicroTime,
    IntOrString,
    Message(Id),
}

/// A message that can be a whole body.
struct Root {
    api_version: &'static str,
    kind: &'static str,
    message: Id,
}

type Names = HashMap<(&'static str, &'static str), Id>;

impl Table {
    pub fn message(&self, id: Id) -> &Message {
        &self.messages[usize::from(id.0)]
    }

    /// The message of a kind; some kinds belong to every version.
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<Id> {
        let fits = |root: &&Root| root.kind == kind && [api_version, "*"].contains(&root.api_version);
        self.kinds.iter().find(fits).map(|root| root.message)
    }

    fn parse(text: &'static str) -> Result<Self, String> {
        let lines = || text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let names = names(lines())?;
        let mut table = Self { messages: Vec::with_capacity(names.len()), kinds: Vec::new() };
        let mut package = "";
        for line in lines() {
            if let Some(header) = line.strip_prefix('@') {
                package = table.package(header, &names)?;
            } else {
                table.messages.push(message(line, package, &names)?);
            }
        }
        Ok(table)
    }

    /// Notes the kinds of a package and gives its name.
    fn package(&mut self, header: &'static str, names: &Names) -> Result<&'static str, String> {
        let (head, kinds) = header.split_once(" = ").ok_or(header)?;
        let (package, api_version) = head.split_once(' ').ok_or(header)?;
        for kind in kinds.split(' ') {
            let message = *names.get(&(package, kind)).ok_or(kind)?;
            self.kinds.push(Root { api_version, kind, message });
        }
        Ok(package)
    }
}

impl Message {
    pub fn field(&self, number: u32) -> Option<&Field> {
        let at = self.fields.binary_search_by_key(&number, |field| field.number).ok()?;
        Some(&self.fields[at])
    }
}

/// `Message:` or `Message |`, and the fields behind it.
fn split_name(line: &'static str) -> Option<(&'static str, bool, &'static str)> {
    let (head, fields) = line.split_once(' ').unwrap_or((line, ""));
    match (head.strip_suffix(':'), fields.strip_prefix("| ")) {
        (Some(name), _) => Some((name, false, fields)),
        (None, Some(fields)) => Some((head, true, fields)),
        (None, None) => None,
    }
}

/// The index of each message, known before any field refers to it.
fn names(lines: impl Iterator<Item = &'static str>) -> Result<Names, String> {
    let mut names = Names::new();
    let mut package = "";
    for line in lines {
        if let Some(header) = line.strip_prefix('@') {
            package = header.split(' ').next().unwrap_or_default();
            continue;
        }
        let (name, ..) = split_name(line).ok_or(line)?;
        let id = Id(u16::try_from(names.len()).map_err(|_| "too many messages")?);
        if names.insert((package, name), id).is_some() {
            return Err(format!("{package}.{name} occurs twice"));
        }
    }
    Ok(names)
}

fn message(line: &'static str, package: &'static str, names: &Names) -> Result<Message, String> {
    let (name, transparent, text) = split_name(line).ok_or(line)?;
    let fields = text
        .split("; ")
        .filter(|text| !text.is_empty())
        .map(|text| field(text, package, names).ok_or_else(|| format!("{name}: {text}")))
        .collect::<Result<Box<[_]>, _>>()?;
    if !fields.is_sorted_by(|a, b| a.number < b.number) {
        return Err(format!("{name}: numbers out of order"));
    }
    Ok(Message { name, transparent, fields })
}

fn field(text: &'static str, package: &'static str, names: &Names) -> Option<Field> {
    let mut words = text.split(' ');
    let (name, number, of) = (words.next()?, words.next()?, words.next()?);
    let omit_zero = of.ends_with('?');
    let of = of.trim_end_matches('?');
    let (shape, of) = if let Some(of) = of.strip_prefix("[]") {
        (Shape::List, of)
    } else if let Some(of) = of.strip_prefix("{}") {
        (Shape::Map, of)
    } else {
        (if name == "-" { Shape::Inline } else { Shape::One }, of)
    };
    let of = match of {
        "string" => Type::String,
        "bool" => Type::Bool,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "double" => Type::Double,
        "bytes" => Type::Bytes,
        "json" => Type::Json,
        "time" => Type::Time,
        "microtime" => Type::MicroTime,
        "intorstring" => Type::IntOrString,
        message => Type::Message(*names.get(&message.split_once('.').unwrap_or((package, message)))?),
    };
    Some(Field { name, number: number.parse().ok()?, shape, of, omit_zero })
}

#[cfg(test)]
mod tests {
    use super::{Shape, TABLE, TEXT, Table, Type};
    use crate::builtin::{KINDS, REVIEWS};
    use crate::http::media::apiversion;

    #[test]
    fn every_kind_that_is_served_has_its_message() {
        for kind in KINDS.iter().chain(REVIEWS) {
            let version = apiversion(kind.group, kind.version);
            let id = TABLE.kind(&version, kind.kind).unwrap_or_else(|| panic!("{version} {}", kind.kind));
            assert_eq!(TABLE.message(id).name, kind.kind);
        }
        assert!(TABLE.kind("autoscaling/v1", "Scale").is_some());
        assert!(TABLE.kind("storage.k8s.io/v1", "DeleteOptions").is_some());
        assert!(TABLE.kind("v1", "PodSpec").is_none());
        assert_ne!(TABLE.kind("v1", "Event"), TABLE.kind("events.k8s.io/v1", "Event"));
    }

    #[test]
    fn a_transparent_message_has_members_and_an_inline_field_is_an_object() {
        for message in &TABLE.messages {
            assert!(!message.transparent || !message.fields.is_empty(), "{}", message.name);
            for field in &message.fields {
                if field.shape == Shape::Inline {
                    let Type::Message(id) = field.of else { panic!("{}.{}", message.name, field.name) };
                    assert!(!TABLE.message(id).transparent, "{}", message.name);
                }
            }
        }
    }

    #[test]
    fn the_table_stays_small_in_memory() {
        let fields: usize = TABLE.messages.iter().map(|m| size_of_val(&*m.fields)).sum();
        let messages = TABLE.messages.len() * size_of::<super::Message>();
        assert!(TEXT.len() + fields + messages < 100 << 10, "{} {fields} {messages}", TEXT.len());
    }

    #[test]
    fn a_broken_table_is_told_apart() {
        for text in
            ["A", "A: x 1", "A: x 1 B", "A: x y string", "A: x 2 bool; y 1 bool", "A:\nA:", "@p v1 = K"]
        {
            assert!(Table::parse(text).is_err(), "{text}");
        }
    }
}
