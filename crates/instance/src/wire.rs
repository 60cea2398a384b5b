//! The messages, clients and servers, as defined in `proto/`.

#![allow(clippy::all, clippy::pedantic, rustdoc::all, reason = "generated")]

/// Every definition, for reflection.
pub const DEFINITIONS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/definitions.bin"));

/// What an engine's answers are made of.
pub mod ptypes {
    tonic::include_proto!("ptypes");
}

/// The proxy and the instance service.
pub mod imrpc {
    tonic::include_proto!("imrpc");
}

/// The process service, which has no package.
pub mod process {
    tonic::include_proto!("_");
}
