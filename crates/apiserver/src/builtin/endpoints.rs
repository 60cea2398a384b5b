//! Endpoints: the addresses behind a service.
//!
//! Owns the rules for addresses and ports. Must never work out which pods back a service.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Endpoints;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{each_mut, fill_zero, int_at, list_at, name, str_at};
use super::{Builtin, Column, PLAIN, column, human};

/// A cell shows this many addresses and counts the others.
const SHOWN: usize = 3;

pub static ENDPOINTS: Builtin = Builtin {
    kind: "Endpoints",
    plural: "endpoints",
    singular: "endpoints",
    short_names: &["ep"],
    namespaced: true,
    create_on_update: true,
    schema: Endpoints::json_schema,
    default,
    columns: &[column::NAME, Column::text("Endpoints", "Addresses and ports that are ready."), column::AGE],
    row,
    ..PLAIN
};

fn default(endpoints: &mut Value) {
    for subset in each_mut(endpoints, "/subsets") {
        for port in each_mut(subset, "/ports") {
            fill_zero(port, "/protocol", "TCP");
        }
    }
}

fn row(endpoints: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(endpoints).into(), addresses(endpoints).into(), human::age(endpoints, now).into()]
}

fn addresses(endpoints: &Value) -> String {
    let subsets = list_at(endpoints, "/subsets");
    if subsets.is_empty() {
        return "<none>".into();
    }
    let all: Vec<String> = subsets.iter().flat_map(subset_addresses).collect();
    let shown = all.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(",");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

fn subset_addresses(subset: &Value) -> Vec<String> {
    let ips = list_at(subset, "/addresses").iter().map(|a| str_at(a, "/ip"));
    let ports = list_at(subset, "/ports");
    if ports.is_empty() {
        return ips.map(Into::into).collect();
    }
    let ips: Vec<&str> = ips.collect();
    let mut all = Vec::new();
    for port in ports {
        let port = int_at(port, "/port").unwrap_or_default();
        all.extend(ips.iter().map(|ip| match ip.contains(':') {
            true => format!("[{ip}]:{port}"),
            false => format!("{ip}:{port}"),
        }));
    }
    all
}
