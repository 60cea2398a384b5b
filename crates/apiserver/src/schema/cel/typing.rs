//! Types of expressions, as far as a schema tells them.
//!
//! Owns what is visible of a schema to a rule. What is not certain is `Dyn`, and allowed.

use kube_cel::cel::common::ast::operators;

use super::super::{Format, Kind, Schema};
use super::convert::escape;

#[derive(Debug, Clone)]
pub enum Type<'a> {
    Dyn,
    Bool,
    Int,
    Double,
    String,
    /// A scalar with operations of its own: bytes, times, durations.
    Special,
    List(Box<Type<'a>>),
    Map(Box<Type<'a>>),
    Object(&'a Schema, bool),
    /// `metadata` of a resource: names only.
    Names,
}

impl<'a> Type<'a> {
    /// `None` for what rules cannot see at all.
    pub fn of(schema: &'a Schema, root: bool) -> Option<Self> {
        let format = schema.rules.as_ref().and_then(|rules| rules.format);
        Some(match schema.kind {
            Kind::Any => return None,
            Kind::IntOrString => Self::Dyn,
            Kind::Boolean => Self::Bool,
            Kind::Integer => Self::Int,
            Kind::Number => Self::Double,
            Kind::String => match format.map(Format::name) {
                Some("byte" | "date" | "date-time" | "duration") => Self::Special,
                _ => Self::String,
            },
            Kind::Array => {
                let items = schema.items.as_deref()?;
                Self::List(Box::new(Self::of(items, items.embedded_resource)?))
            }
            Kind::Object => match schema.additional.as_deref() {
                Some(values) => Self::Map(Box::new(Self::of(values, values.embedded_resource)?)),
                None => Self::Object(schema, root || schema.embedded_resource),
            },
        })
    }

    pub fn field(&self, name: &str) -> Result<Self, String> {
        let undefined = || format!("undefined field '{name}'");
        match self {
            Self::Dyn => Ok(Self::Dyn),
            Self::Map(values) => Ok((**values).clone()),
            Self::Names => match name {
                "name" | "generateName" => Ok(Self::String),
                _ => Err(undefined()),
            },
            Self::Object(_, true) if name == "metadata" => Ok(Self::Names),
            Self::Object(schema, _) => schema
                .properties
                .iter()
                .find(|(field, _)| escape(field).as_deref() == Some(name))
                .and_then(|(_, field)| Self::of(field, field.embedded_resource))
                .ok_or_else(undefined),
            Self::Bool | Self::Int | Self::Double | Self::String | Self::Special | Self::List(_) => {
                Err(format!("type '{}' does not support field selection", self.name()))
            }
        }
    }

    pub fn element(&self) -> Self {
        match self {
            Self::List(inner) => (**inner).clone(),
            Self::Map(_) => Self::String,
            _ => Self::Dyn,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Double => "double",
            Self::String => "string",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Object(..) | Self::Names => "object",
            Self::Special => "scalar",
            Self::Dyn => "dyn",
        }
    }
}

/// What a function or operator returns, as far as it is certain.
pub fn result_of<'a>(name: &str, target: Option<&Type<'a>>, args: &[Type<'a>]) -> Type<'a> {
    match name {
        operators::LOGICAL_AND
        | operators::LOGICAL_OR
        | operators::LOGICAL_NOT
        | operators::EQUALS
        | operators::NOT_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS
        | operators::IN
        | operators::NOT_STRICTLY_FALSE
        | "startsWith"
        | "endsWith"
        | "contains"
        | "matches"
        | "hasValue" => Type::Bool,
        operators::CONDITIONAL => args.get(1).cloned().unwrap_or(Type::Dyn),
        operators::INDEX => match args.first() {
            Some(Type::List(inner) | Type::Map(inner)) => (**inner).clone(),
            _ => Type::Dyn,
        },
        operators::ADD => match args.first() {
            Some(kind @ (Type::Int | Type::Double | Type::String)) => kind.clone(),
            _ => Type::Dyn,
        },
        operators::SUBSTRACT
        | operators::MULTIPLY
        | operators::DIVIDE
        | operators::MODULO
        | operators::NEGATE => match args.first() {
            Some(kind @ (Type::Int | Type::Double)) => kind.clone(),
            _ => Type::Dyn,
        },
        "size" | "int" | "indexOf" | "lastIndexOf" => Type::Int,
        "string" | "lowerAscii" | "upperAscii" | "trim" | "join" | "format" | "substring" | "charAt" => {
            Type::String
        }
        "reverse" => target.cloned().unwrap_or(Type::Dyn),
        "bool" => Type::Bool,
        "double" => Type::Double,
        _ => Type::Dyn,
    }
}
