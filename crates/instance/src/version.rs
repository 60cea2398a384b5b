//! The versions that clients negotiate by.

/// Of the process and instance services: from 4 on, clients use the instance service.
pub const API: i64 = 6;
pub const API_MIN: i64 = 1;
/// Of the proxy. 7 would promise clones that share data with their source.
pub const PROXY_API: i64 = 6;
pub const PROXY_API_MIN: i64 = 1;
/// Of an engine's command line, of its control, and of a replica's directory, as clients of other engines count them.
pub const CLI_API: i64 = 12;
pub const CLI_API_MIN: i64 = 8;
pub const CONTROLLER_API: i64 = 6;
pub const CONTROLLER_API_MIN: i64 = 4;
pub const DATA_FORMAT: i64 = 1;

/// What an engine image would be called.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");
