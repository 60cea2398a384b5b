//! Every kind Granary serves: types, definitions, names, quantities. No I/O, and nothing of the API server.
//!
//! # What a manifest may rely on
//!
//! Fields have the names, types and defaults of the projects that defined them. Three rules hold everywhere:
//!
//! 1. **Nothing is added.** A field that upstream does not require is an `Option`; defaults are in the schema,
//!    where the API server applies them, and never in the Rust type. `null` and absent mean the same.
//! 2. **Nothing is dropped.** Every object of ours keeps members it has no field for: the schema says
//!    `x-kubernetes-preserve-unknown-fields` on each object below the root, so that no API server prunes them,
//!    and each Rust struct has an `extra` map that is written back, so that no controller loses them. The
//!    exception are parts that belong to Kubernetes (claims, references, metadata): those have all the
//!    fields of the Kubernetes version this is built for, and no others.
//! 3. **Wishes are checked, reports are carried.** Enums in `spec` are closed: the schema lists their values.
//!    Enums in `status` that upstream leaves open are open here too, so that an object written by another
//!    version can always be read.
//!
//! # Status
//!
//! Some kinds have no status end point upstream, and have none here ([`crds`] marks them): their status is
//! written with the object itself.

#![allow(clippy::duplicated_attributes, reason = "printed columns of one kind may share a type")]

pub mod cdi;
pub mod cni;
pub mod constants;
pub mod crds;
pub mod harvester;
pub mod k8s;
pub mod longhorn;
pub mod names;
pub mod quantity;
mod schema;
pub mod snapshot;
pub mod wire;
