//! How Go's JSON encoder writes fields with the `string` option: numbers as strings, strings as quoted strings.
//! Writers here produce exactly that; readers also take the plain forms and null.

use serde::{Deserialize, Deserializer, Serializer, de::DeserializeOwned, de::Error};

/// Numbers: `"123"`, read also as `123`.
pub mod number {
    use super::{Deserialize, Deserializer, Error, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(u64),
        Text(String),
        Null(()),
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        match Either::deserialize(deserializer)? {
            Either::Number(number) => Ok(number),
            Either::Text(text) if text.is_empty() => Ok(0),
            Either::Text(text) => {
                text.parse().map_err(|_| D::Error::custom(format!("{text:?} is not a size")))
            }
            Either::Null(()) => Ok(0),
        }
    }
}

/// Strings: `"\"abc\""`, read also as `"abc"`.
pub mod text {
    use super::{Deserialize, Deserializer, Serializer};
    use serde::ser::Error;

    pub fn serialize<S: Serializer>(value: &str, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&serde_json::to_string(value).map_err(S::Error::custom)?)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
        let outer = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
        Ok(serde_json::from_str(&outer).unwrap_or(outer))
    }
}

/// Go writes an empty map, list or struct pointer as null.
pub fn null_is_default<'de, T: Default + DeserializeOwned, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}
