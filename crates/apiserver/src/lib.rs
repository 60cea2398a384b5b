//! The embedded Kubernetes API: store, watch, patch, admission, discovery, tables, auth.

pub mod builtin;
pub mod error;
pub mod openapi;
pub mod schema;
