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

use std::time::Duration;

use support::Binary;
use support::raw::Raw;

/// A server of its own for one story.
async fn server() -> (Binary, Raw) {
    let binary = Binary::start(Duration::from_secs(300)).await;
    let raw = Raw(binary.impatient_client().await);
    (binary, raw)
}
