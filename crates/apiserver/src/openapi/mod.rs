//! placeholder
pub fn document(_: &crate::registry::Table, _: &str, _: bool) -> Option<(bytes::Bytes, &'static str)> { None }
