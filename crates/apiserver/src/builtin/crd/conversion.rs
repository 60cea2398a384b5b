//! How objects of a custom kind move between its versions.
//!
//! Owns the rules for the conversion webhook. Must never call one.

use granary_api::names;

use super::super::field::Field;
use crate::error::FieldError;

/// Refusals use the names that this part had before version 1, as in Kubernetes.
pub fn check_conversion(spec: &Field, errors: &mut Vec<FieldError>) {
    let conversion = spec.at("conversion");
    if !conversion.is_set() {
        return;
    }
    let strategy = conversion.at("strategy");
    if strategy.text() != "None" && spec.at("preserveUnknownFields").is_true() {
        errors.push(strategy.invalid("must be None if spec.preserveUnknownFields is true"));
    }
    strategy.need_one_of(&["None", "Webhook"], errors);
    let webhook = conversion.at("webhook");
    let client = webhook.at("clientConfig").known_as(format!("{}.webhookClientConfig", conversion.path));
    let versions = webhook
        .at("conversionReviewVersions")
        .known_as(format!("{}.conversionReviewVersions", conversion.path));
    if strategy.text() != "Webhook" {
        for field in [&client, &versions].into_iter().filter(|field| !field.is_empty()) {
            errors.push(field.forbidden("should not be set when strategy is not set to Webhook"));
        }
        return;
    }
    check_client(&client, errors);
    check_versions(&versions, errors);
}

fn check_client(client: &Field, errors: &mut Vec<FieldError>) {
    if !client.is_set() {
        errors.push(client.required("required when strategy is set to Webhook"));
        return;
    }
    let (url, service) = (client.at("url"), client.at("service"));
    if url.is_set() == service.is_set() {
        errors.push(client.required("exactly one of url or service is required"));
    } else if url.is_set() {
        check_url(&url, errors);
    } else {
        check_service(&service, errors);
    }
}

fn check_url(url: &Field, errors: &mut Vec<FieldError>) {
    let form = "; desired format: https://host[/path]";
    let Some(rest) = url.text().strip_prefix("https://") else {
        let scheme = url.text().split_once("://").map(|(scheme, _)| scheme).unwrap_or_default();
        errors.push(FieldError::invalid(
            url.path.as_str(),
            scheme,
            format!("'https' is the only allowed URL scheme{form}"),
        ));
        return;
    };
    let mut refuse =
        |part: &str, detail: &str| errors.push(FieldError::invalid(url.path.as_str(), part, detail));
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let host = rest.split('/').next().unwrap_or_default();
    if host.is_empty() {
        refuse("", &format!("host must be specified{form}"));
    }
    if host.contains('@') {
        // The user information is most likely a password.
        refuse("<redacted>", "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        refuse(fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        refuse(query, "query parameters are not permitted in the URL");
    }
}

fn check_service(service: &Field, errors: &mut Vec<FieldError>) {
    service.at("name").need(errors);
    service.at("namespace").need(errors);
    let detail = "port is not valid: must be between 1 and 65535, inclusive";
    service.at("port").in_range(1, 65535, detail, errors);
    check_path(&service.at("path"), errors);
}

/// Segments of a path are as plain as names.
fn check_path(path: &Field, errors: &mut Vec<FieldError>) {
    if matches!(path.text(), "" | "/") {
        return;
    }
    if !path.text().starts_with('/') {
        errors.push(path.invalid("must start with a '/'"));
    }
    let inner = path.text().get(1..).unwrap_or_default();
    for (i, step) in inner.strip_suffix('/').unwrap_or(inner).split('/').enumerate() {
        if step.is_empty() {
            errors.push(path.invalid(format!("segment[{i}] may not be empty")));
            continue;
        }
        for complaint in names::dns1123_subdomain(step) {
            errors.push(path.invalid(format!("segment[{i}]: {complaint}")));
        }
    }
}

fn check_versions(versions: &Field, errors: &mut Vec<FieldError>) {
    if !versions.need(errors) {
        return;
    }
    let mut seen = Vec::new();
    for version in versions.items() {
        if seen.contains(&version.text()) {
            errors.push(version.invalid("duplicate version"));
            continue;
        }
        seen.push(version.text());
        version.follow(names::dns1035_label, errors);
    }
    if !seen.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
        errors.push(versions.invalid("must include at least one of v1, v1beta1"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::CUSTOM_RESOURCE_DEFINITION as CRD;
    use super::super::tests::crd;
    use crate::builtin::testing::{defaulted, refusals, with};
    use serde_json::{Value, json};

    fn converted(conversion: Value) -> Vec<String> {
        refusals(&CRD, &defaulted(&CRD, with(crd(), "/spec/conversion", conversion)))
    }

    #[test]
    fn a_webhook_is_complete() {
        let service = json!({ "name": "hook", "namespace": "system" });
        let good = json!({ "strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"], "clientConfig": { "service": service },
        } });
        assert_eq!(converted(good), [""; 0]);
        assert_eq!(
            converted(json!({ "strategy": "Webhook" })),
            [
                "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
                "spec.conversion.conversionReviewVersions: Required value",
            ]
        );
        let bad = json!({ "strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v2", "v2"], "clientConfig": { "url": "http://hook" },
        } });
        assert_eq!(
            converted(bad),
            [
                "spec.conversion.webhookClientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL \
                 scheme; desired format: https://host[/path]",
                "spec.conversion.conversionReviewVersions[1]: Invalid value: \"v2\": duplicate version",
                "spec.conversion.conversionReviewVersions: Invalid value: [\"v2\",\"v2\"]: must include at least one \
                 of v1, v1beta1",
            ]
        );
    }

    #[test]
    fn a_url_is_only_a_place() {
        let url = |url: &str| {
            let webhook = json!({ "conversionReviewVersions": ["v1"], "clientConfig": { "url": url } });
            converted(json!({ "strategy": "Webhook", "webhook": webhook })).join("; ")
        };
        assert_eq!(url("https://hook.example.com/convert"), "");
        assert!(url("https:///convert").contains("\"\": host must be specified"));
        assert!(
            url("https://hook/x?y=1").ends_with("\"y=1\": query parameters are not permitted in the URL")
        );
        assert!(url("https://hook/x#z").ends_with("\"z\": fragments are not permitted in the URL"));
        assert!(!url("https://me:hunter2@hook/").contains("hunter2"));
    }

    #[test]
    fn without_a_webhook_there_is_nothing_to_configure() {
        let odd = json!({ "strategy": "None", "webhook": { "conversionReviewVersions": ["v1"] } });
        assert_eq!(
            converted(odd),
            [
                "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to \
                 Webhook"
            ]
        );
    }
}
