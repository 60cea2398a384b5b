//! The building blocks of every kind: enums that spell their values as upstream does, integers that travel as
//! strings, the map that keeps what we do not know, and schemas for parts that are deliberately left open.
//! Nothing here belongs to one API group.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

/// Members of an object that this version has no field for; they are written back as they were read.
pub type Extra = BTreeMap<String, Value>;

/// An enum whose values the schema lists: anything else is refused by the API server and by serde.
macro_rules! closed_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$note:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$note])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// Every value, in the order of the schema.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The value as it travels.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($text),+] })
            }
        }
    };
}

/// An enum whose values other versions of the upstream software may extend: the schema is a plain string,
/// and a value without a name here is carried along as `Other`.
macro_rules! open_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$note:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$note])* $variant,)+
            /// A value this version has no name for.
            Other(String),
        }

        impl $name {
            /// The value as it travels.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Self::from(<std::borrow::Cow<'de, str>>::deserialize(deserializer)?.as_ref()))
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string" })
            }
        }
    };
}

pub(crate) use {closed_enum, open_enum};

open_enum! {
    /// What a condition says.
    #[derive(Default)]
    pub enum ConditionStatus {
        True = "True",
        False = "False",
        #[default]
        Unknown = "Unknown",
    }
}

/// A 64-bit integer that travels as a JSON string, as Longhorn's sizes do; a bare number is accepted too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntString(pub i64);

impl IntString {
    /// The number as bytes; a negative one counts as none.
    pub fn bytes(self) -> u64 {
        u64::try_from(self.0).unwrap_or(0)
    }
}

impl From<i64> for IntString {
    fn from(number: i64) -> Self {
        IntString(number)
    }
}

impl Serialize for IntString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for IntString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = IntString;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer written as a string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<IntString, E> {
                text.parse().map(IntString).map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<IntString, E> {
                Ok(IntString(number))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<IntString, E> {
                i64::try_from(number)
                    .map(IntString)
                    .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for IntString {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "IntString".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[+-]?[0-9]{1,19}$" })
    }
}

/// Schema of an object whose inside is somebody else's: everything is kept, nothing is checked.
pub(crate) fn open_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// For kinds without `spec`: what is left at the top level once the fields of every object are taken out.
///
/// Serde hands a flattened map all members that no field claims, and the root type has no field for these
/// two because it writes them itself.
pub(crate) fn extra_of_root<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Extra, D::Error> {
    let mut extra = Extra::deserialize(deserializer)?;
    extra.remove("apiVersion");
    extra.remove("kind");
    Ok(extra)
}

#[cfg(test)]
mod tests {
    use super::*;

    closed_enum! {
        pub enum Colour { Red = "red", LightBlue = "light-blue", }
    }

    #[test]
    fn a_closed_enum_lists_its_values_and_refuses_others() {
        assert_eq!(serde_json::to_string(&Colour::LightBlue).unwrap(), "\"light-blue\"");
        assert_eq!(serde_json::from_str::<Colour>("\"red\"").unwrap(), Colour::ALL[0]);
        let refusal = serde_json::from_str::<Colour>("\"green\"").unwrap_err().to_string();
        assert!(refusal.contains("expected `red` or `light-blue`"), "{refusal}");
        assert_eq!(
            serde_json::to_value(schemars::schema_for!(Colour)).unwrap()["enum"],
            serde_json::json!(["red", "light-blue"])
        );
    }

    #[test]
    fn an_open_enum_carries_values_it_does_not_know() {
        let future: ConditionStatus = serde_json::from_str("\"Maybe\"").unwrap();
        assert_eq!(future, ConditionStatus::Other("Maybe".to_owned()));
        assert_eq!(serde_json::to_string(&future).unwrap(), "\"Maybe\"");
        assert_eq!(ConditionStatus::from("True"), ConditionStatus::True);
    }

    #[test]
    fn integers_in_strings_keep_their_quotes() {
        let size: IntString = serde_json::from_str("\"10737418240\"").unwrap();
        assert_eq!(size, IntString(10 << 30));
        assert_eq!(serde_json::to_string(&size).unwrap(), "\"10737418240\"");
        assert_eq!(serde_json::from_str::<IntString>("5").unwrap(), IntString(5));
        for bad in ["\"10Gi\"", "\"\"", "1.5", "18446744073709551615", "null"] {
            assert!(serde_json::from_str::<IntString>(bad).is_err(), "{bad}");
        }
        assert_eq!(IntString(-1).bytes(), 0);
    }
}
