//! CSIDriver: what a CSI driver on this cluster can and wants.
//!
//! Owns defaults and immutability of this kind. Must never talk to a driver.

use jiff::Timestamp;
use k8s_openapi::api::storage::v1::CSIDriver;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::access::{at, bool_at, fill, fill_zero, list_at, name, str_at, texts_at};
use super::field::Field;
use super::{Builtin, Column, PLAIN, column, human};
use crate::error::FieldError;

pub static CSI_DRIVER: Builtin = Builtin {
    group: "storage.k8s.io",
    kind: "CSIDriver",
    plural: "csidrivers",
    singular: "csidriver",
    has_generation: true,
    needs_version: true,
    schema: CSIDriver::json_schema,
    default,
    validate,
    columns: &[
        column::NAME,
        Column::boolean("AttachRequired", "Whether volumes must be attached to a node before use."),
        Column::boolean("PodInfoOnMount", "Whether the driver is told which pod mounts a volume."),
        Column::boolean("StorageCapacity", "Whether the driver publishes how much space it has."),
        Column::text("TokenRequests", "Audiences of the tokens that the driver is handed."),
        Column::boolean("RequiresRepublish", "Whether mounts are refreshed from time to time."),
        Column::text("Modes", "The life cycles of volumes that the driver supports."),
        column::AGE,
    ],
    row,
    ..PLAIN
};

fn default(driver: &mut Value) {
    fill(driver, "/spec/attachRequired", true);
    fill(driver, "/spec/podInfoOnMount", false);
    fill(driver, "/spec/storageCapacity", false);
    fill(driver, "/spec/fsGroupPolicy", "ReadWriteOnceWithFSType");
    fill_zero(driver, "/spec/volumeLifecycleModes", json!(["Persistent"]));
    fill(driver, "/spec/requiresRepublish", false);
    fill(driver, "/spec/seLinuxMount", false);
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let spec = Field::root(new).at("spec");
    // The path has a typo that clients know by now.
    let attach = spec.at("attachRequired").known_as("spec.attachedRequired");
    for flag in [&attach, &spec.at("podInfoOnMount"), &spec.at("storageCapacity")] {
        if !flag.is_set() {
            errors.push(flag.required(""));
        }
    }
    spec.at("fsGroupPolicy").one_of(&["File", "None", "ReadWriteOnceWithFSType"], errors);
    check_tokens(&spec.at("tokenRequests"), errors);
    let modes = spec.at("volumeLifecycleModes");
    for mode in modes.items() {
        mode.known_as(modes.path.as_str()).one_of(&["Persistent", "Ephemeral"], errors);
    }
    if !spec.at("seLinuxMount").is_set() {
        errors.push(spec.at("seLinuxMount").required(""));
    }
    let period = spec.at("nodeAllocatableUpdatePeriodSeconds");
    if period.int().is_some_and(|seconds| seconds < 10) {
        errors.push(period.invalid("must be greater than or equal to 10 seconds"));
    }
    let in_secrets = spec.at("serviceAccountTokenInSecrets");
    if in_secrets.is_set() && spec.at("tokenRequests").count() == 0 {
        errors.push(
            in_secrets.invalid("serviceAccountTokenInSecrets is set but no tokenRequests are specified"),
        );
    }
    if let Some(old) = old {
        let old = Field::root(old).at("spec");
        attach.unchanged(&old.at("attachRequired"), errors);
        modes.unchanged(&old.at("volumeLifecycleModes"), errors);
    }
}

fn check_tokens(requests: &Field, errors: &mut Vec<FieldError>) {
    let mut audiences = Vec::new();
    for request in requests.items() {
        let audience = request.at("audience");
        if audiences.contains(&audience.text()) {
            errors.push(FieldError::duplicate(audience.path.as_str(), audience.text()));
            continue;
        }
        audiences.push(audience.text());
        let expiry = request.at("expirationSeconds");
        match expiry.int() {
            Some(..600) => errors.push(expiry.invalid("may not specify a duration less than 10 minutes")),
            Some(4_294_967_297..) => {
                errors.push(expiry.invalid("may not specify a duration larger than 2^32 seconds"));
            }
            _ => {}
        }
    }
}

fn row(driver: &Value, now: Timestamp) -> Vec<Value> {
    let attach = at(driver, "/spec/attachRequired").as_bool().unwrap_or(true);
    let modes = texts_at(driver, "/spec/volumeLifecycleModes").join(",");
    let tokens = match at(driver, "/spec/tokenRequests") {
        Value::Null => "<unset>".to_string(),
        _ => {
            let requests = list_at(driver, "/spec/tokenRequests").iter();
            requests.map(|r| str_at(r, "/audience")).collect::<Vec<_>>().join(",")
        }
    };
    vec![
        name(driver).into(),
        attach.into(),
        bool_at(driver, "/spec/podInfoOnMount").into(),
        bool_at(driver, "/spec/storageCapacity").into(),
        tokens.into(),
        bool_at(driver, "/spec/requiresRepublish").into(),
        if modes.is_empty() { "<none>".into() } else { modes.into() },
        human::age(driver, now).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{cells, defaulted, refusals, stored, update_refusals, with};

    fn driver() -> Value {
        defaulted(&CSI_DRIVER, json!({ "metadata": stored("driver.longhorn.io"), "spec": {} }))
    }

    #[test]
    fn a_bare_driver_gets_all_defaults() {
        assert_eq!(
            driver()["spec"],
            json!({
                "attachRequired": true, "podInfoOnMount": false, "storageCapacity": false,
                "fsGroupPolicy": "ReadWriteOnceWithFSType", "volumeLifecycleModes": ["Persistent"],
                "requiresRepublish": false, "seLinuxMount": false,
            })
        );
        assert_eq!(refusals(&CSI_DRIVER, &driver()), [""; 0]);
    }

    #[test]
    fn values_are_checked() {
        let mut bad = driver();
        bad["spec"]["fsGroupPolicy"] = json!("Maybe");
        bad["spec"]["volumeLifecycleModes"] = json!(["Eternal"]);
        bad["spec"]["tokenRequests"] =
            json!([{ "audience": "a", "expirationSeconds": 5 }, { "audience": "a" }]);
        assert_eq!(
            refusals(&CSI_DRIVER, &bad),
            [
                "spec.fsGroupPolicy: Unsupported value: \"Maybe\": supported values: \"File\", \"None\", \
                 \"ReadWriteOnceWithFSType\"",
                "spec.tokenRequests[0].expirationSeconds: Invalid value: 5: may not specify a duration less \
                 than 10 minutes",
                "spec.tokenRequests[1].audience: Duplicate value: \"a\"",
                "spec.volumeLifecycleModes: Unsupported value: \"Eternal\": supported values: \"Persistent\", \
                 \"Ephemeral\"",
            ]
        );
    }

    #[test]
    fn how_volumes_are_attached_never_changes() {
        let new = with(driver(), "/spec/attachRequired", json!(false));
        assert_eq!(
            update_refusals(&CSI_DRIVER, &driver(), &new),
            ["spec.attachedRequired: Invalid value: false: field is immutable"]
        );
    }

    #[test]
    fn the_row_shows_flags_and_audiences() {
        assert_eq!(
            cells(&CSI_DRIVER, &driver()),
            ["driver.longhorn.io", "true", "false", "false", "<unset>", "false", "Persistent", "5m12s"]
        );
        let tokens = with(driver(), "/spec/tokenRequests", json!([{ "audience": "a" }, { "audience": "b" }]));
        assert_eq!(cells(&CSI_DRIVER, &tokens)[4], "a,b");
    }
}
