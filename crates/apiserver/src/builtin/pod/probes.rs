//! How the health of a container is asked for, and what happens when it starts and stops.
//!
//! Owns the rules for probes and hooks. Must never probe.

use super::super::field::Field;
use crate::error::FieldError;

pub fn check(container: &Field, spec: &Field, errors: &mut Vec<FieldError>) {
    let grace = spec.at("terminationGracePeriodSeconds").int();
    for hook in ["postStart", "preStop"] {
        let hook = container.at("lifecycle").at(hook);
        if hook.is_set() {
            check_handler(&hook, grace, errors);
        }
    }
    for (name, one_success) in [("livenessProbe", true), ("readinessProbe", false), ("startupProbe", true)] {
        let probe = container.at(name);
        if !probe.is_set() {
            continue;
        }
        check_probe(&probe, grace, errors);
        let successes = probe.at("successThreshold");
        if one_success && successes.int() != Some(1) {
            errors.push(successes.invalid("must be 1"));
        }
        let own_grace = probe.at("terminationGracePeriodSeconds");
        if name == "readinessProbe" && own_grace.is_set() {
            errors.push(own_grace.invalid("must not be set for readinessProbes"));
        }
    }
}

fn check_probe(probe: &Field, grace: Option<i64>, errors: &mut Vec<FieldError>) {
    check_handler(probe, grace, errors);
    for field in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        probe.at(field).not_negative(errors);
    }
    let own_grace = probe.at("terminationGracePeriodSeconds");
    if own_grace.int().is_some_and(|seconds| seconds <= 0) {
        errors.push(own_grace.invalid("must be greater than 0"));
    }
}

fn check_handler(handler: &Field, grace: Option<i64>, errors: &mut Vec<FieldError>) {
    let mut found = false;
    for name in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let action = handler.at(name);
        if !action.is_set() {
            continue;
        }
        if found {
            errors.push(action.forbidden("may not specify more than 1 handler type"));
            continue;
        }
        found = true;
        match name {
            "exec" => {
                action.at("command").need(errors);
            }
            "httpGet" => check_http(&action, errors),
            "sleep" => check_sleep(&action, grace, errors),
            _ => action.at("port").port(errors),
        }
    }
    if !found {
        errors.push(handler.required("must specify a handler type"));
    }
}

fn check_http(action: &Field, errors: &mut Vec<FieldError>) {
    action.at("path").need(errors);
    action.at("port").port(errors);
    action.at("scheme").one_of(&["HTTP", "HTTPS"], errors);
    let headers = action.at("httpHeaders");
    for header in headers.items() {
        let name = header.at("name").text();
        if name.is_empty() || !name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-') {
            errors.push(FieldError::invalid(
                headers.path.as_str(),
                name,
                "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex \
                 used for validation is '[-A-Za-z0-9]+')",
            ));
        }
    }
}

fn check_sleep(action: &Field, grace: Option<i64>, errors: &mut Vec<FieldError>) {
    let seconds = action.at("seconds").int().unwrap_or_default();
    if let Some(grace) = grace
        && !(0..=grace).contains(&seconds)
    {
        let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.push(FieldError::invalid(action.path.as_str(), seconds, detail));
    }
}

#[cfg(test)]
mod tests {
    use super::super::POD;
    use super::super::tests::pod;
    use crate::builtin::testing::{defaulted, refusals, with};
    use serde_json::json;

    #[test]
    fn a_probe_asks_in_one_way() {
        let mut sent = with(pod(), "/spec/containers/0/livenessProbe", json!({ "successThreshold": 2 }));
        sent["spec"]["containers"][0]["readinessProbe"] = json!({
            "httpGet": { "port": 99999, "scheme": "FTP" }, "tcpSocket": { "port": "web" }, "periodSeconds": -1,
        });
        sent["spec"]["containers"][0]["lifecycle"] = json!({ "preStop": { "sleep": { "seconds": 31 } } });
        let path = "spec.containers[0]";
        assert_eq!(
            refusals(&POD, &defaulted(&POD, sent)),
            [
                format!(
                    "{path}.lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than \
                     terminationGracePeriodSeconds (30)"
                ),
                format!("{path}.livenessProbe: Required value: must specify a handler type"),
                format!("{path}.livenessProbe.successThreshold: Invalid value: 2: must be 1"),
                format!(
                    "{path}.readinessProbe.httpGet.port: Invalid value: 99999: must be between 1 and 65535, inclusive"
                ),
                format!(
                    "{path}.readinessProbe.httpGet.scheme: Unsupported value: \"FTP\": supported values: \"HTTP\", \
                     \"HTTPS\""
                ),
                format!(
                    "{path}.readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"
                ),
                format!(
                    "{path}.readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0"
                ),
            ]
        );
    }
}
