//! Hostile, careless and racing clients over TLS: each gets the answer a Kubernetes API server gives.

#![expect(clippy::unwrap_used, reason = "a story ends where its scenery breaks")]

#[path = "bad_input/concurrency.rs"]
mod concurrency;
#[path = "bad_input/definitions.rs"]
mod definitions;
#[path = "bad_input/deletion.rs"]
mod deletion;
#[path = "bad_input/dry_run.rs"]
mod dry_run;
#[path = "bad_input/identity.rs"]
mod identity;
#[path = "bad_input/refusals.rs"]
mod refusals;
#[path = "bad_input/subresources.rs"]
mod subresources;
mod support;

use support::raw::Raw;
use support::{Granary, Place};

/// A server of its own for one story.
async fn server() -> (Granary, Raw) {
    let granary = Granary::start(Place::OverTls).await;
    let raw = Raw(granary.client("hostile").await);
    (granary, raw)
}
