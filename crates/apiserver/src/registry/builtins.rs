//! The built-in kinds as resources.

use super::{Resource, Source, Unwritten};
use crate::builtin::{self, Builtin};
use crate::fields::Set;
use crate::schema;

pub(super) fn resources() -> Vec<Resource> {
    let mut compiler = schema::Definitions::new();
    let stored = builtin::KINDS.iter().map(|kind| (*kind, storage(kind)));
    let reviews = builtin::REVIEWS.iter().map(|kind| (*kind, String::new()));
    stored.chain(reviews).map(|(kind, storage)| resource(&mut compiler, kind, storage)).collect()
}

/// Both event APIs show the same objects; everything else has a place of its own.
fn storage(kind: &Builtin) -> String {
    if kind.plural == "events" { "events.".into() } else { format!("{}.{}", kind.plural, kind.group) }
}

fn resource(compiler: &mut schema::Definitions, kind: &'static Builtin, storage: String) -> Resource {
    Resource {
        group: kind.group.into(),
        version: kind.version.into(),
        kind: kind.kind.into(),
        list_kind: format!("{}List", kind.kind),
        plural: kind.plural.into(),
        singular: kind.singular.into(),
        short_names: kind.short_names.iter().map(ToString::to_string).collect(),
        categories: kind.categories.iter().map(ToString::to_string).collect(),
        namespaced: kind.namespaced,
        storage,
        stored_version: kind.version.into(),
        schema: compiler.builtin(kind),
        has_status: kind.has_status,
        has_generation: kind.has_generation,
        scale: None,
        source: Source::Builtin(kind),
        unwritten: unwritten(kind.has_status),
    }
}

/// Which fields each end point leaves alone, for field ownership.
pub(super) fn unwritten(has_status: bool) -> Unwritten {
    if !has_status {
        return Unwritten::default();
    }
    Unwritten { by_main: Set::of_fields(&[&["status"]]), by_status: Set::of_fields(&[&["spec"]]) }
}
