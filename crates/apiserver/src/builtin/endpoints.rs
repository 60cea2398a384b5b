//! Endpoints: the addresses behind a service.
//!
//! Owns the rules for addresses and ports. Must never work out which pods back a service.

use granary_api::names;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Endpoints;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{each_mut, fill_zero, int_at, list_at, name, same_at, str_at};
use super::field::Field;
use super::{Builtin, Column, PLAIN, address, column, human};
use crate::error::FieldError;

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
    validate,
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

fn validate(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    // What was stored under older rules may stay.
    if old.is_some_and(|old| same_at(new, old, "/subsets")) {
        return;
    }
    for subset in Field::root(new).at("subsets").items() {
        let (ready, not_ready) = (subset.at("addresses"), subset.at("notReadyAddresses"));
        if ready.count() == 0 && not_ready.count() == 0 {
            errors.push(subset.required("must specify `addresses` or `notReadyAddresses`"));
        }
        for entry in ready.items().chain(not_ready.items()) {
            entry.at("ip").follow(address::endpoint, errors);
            entry.at("hostname").follow_if_set(names::dns1123_label, errors);
            if entry.at("nodeName").is_set() {
                entry.at("nodeName").follow(names::dns1123_subdomain, errors);
            }
        }
        let ports = subset.at("ports");
        for port in ports.items() {
            if ports.count() > 1 || !port.at("name").is_empty() {
                port.at("name").need_name(names::dns1123_label, errors);
            }
            port.at("port").port_number(errors);
            port.at("protocol").need_one_of(&["SCTP", "TCP", "UDP"], errors);
            port.at("appProtocol").follow_if_set(names::label_key, errors);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{cells, defaulted, refusals, stored, with};
    use serde_json::json;

    fn endpoints() -> Value {
        let subsets =
            json!([{ "addresses": [{ "ip": "10.0.0.1" }, { "ip": "fd00::1" }], "ports": [{ "port": 80 }] }]);
        defaulted(&ENDPOINTS, json!({ "metadata": stored("web"), "subsets": subsets }))
    }

    #[test]
    fn addresses_and_ports_are_checked() {
        assert_eq!(endpoints()["subsets"][0]["ports"][0]["protocol"], "TCP");
        assert_eq!(refusals(&ENDPOINTS, &endpoints()), [""; 0]);
        let bad = json!({ "subsets": [
            {}, { "addresses": [{ "ip": "127.0.0.1" }], "ports": [{ "port": 99999, "protocol": "IP" }] },
        ] });
        assert_eq!(
            refusals(&ENDPOINTS, &bad),
            [
                "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`",
                "subsets[1].addresses[0].ip: Invalid value: \"127.0.0.1\": may not be in the loopback range \
                 (127.0.0.0/8, ::1/128)",
                "subsets[1].ports[0].port: Invalid value: 99999: must be between 1 and 65535, inclusive",
                "subsets[1].ports[0].protocol: Unsupported value: \"IP\": supported values: \"SCTP\", \"TCP\", \
                 \"UDP\"",
            ]
        );
    }

    #[test]
    fn the_row_lists_three_and_counts_the_rest() {
        assert_eq!(cells(&ENDPOINTS, &endpoints()), ["web", "10.0.0.1:80,[fd00::1]:80", "5m12s"]);
        let many =
            with(endpoints(), "/subsets/0/ports", json!([{ "port": 80 }, { "port": 81 }, { "port": 82 }]));
        assert_eq!(cells(&ENDPOINTS, &many)[1], "10.0.0.1:80,[fd00::1]:80,10.0.0.1:81 + 3 more...");
        assert_eq!(cells(&ENDPOINTS, &json!({}))[1], "<none>");
        let headless = with(endpoints(), "/subsets/0/ports", json!([]));
        assert_eq!(cells(&ENDPOINTS, &headless)[1], "10.0.0.1,fd00::1");
    }
}
