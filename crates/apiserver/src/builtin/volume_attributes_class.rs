//! VolumeAttributesClass: named settings of a driver that a volume can be switched to.
//!
//! Owns the rules of this kind. Must never know what a parameter means.

use jiff::Timestamp;
use k8s_openapi::api::storage::v1::VolumeAttributesClass;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{name, same_at, str_at};
use super::field::Field;
use super::storage_class::{check_parameters, check_provisioner};
use super::{Builtin, Column, PLAIN, column, human};
use crate::error::FieldError;

pub static VOLUME_ATTRIBUTES_CLASS: Builtin = Builtin {
    group: "storage.k8s.io",
    kind: "VolumeAttributesClass",
    plural: "volumeattributesclasses",
    singular: "volumeattributesclass",
    short_names: &["vac"],
    schema: VolumeAttributesClass::json_schema,
    validate,
    columns: &[
        column::NAME,
        Column::text("DriverName", "The driver that understands the parameters."),
        column::AGE,
    ],
    row,
    ..PLAIN
};

fn validate(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let class = Field::root(new);
    for field in ["driverName", "parameters"] {
        if old.is_some_and(|old| !same_at(new, old, &format!("/{field}"))) {
            errors.push(class.at(field).forbidden(format!("updates to {field} are forbidden.")));
        }
    }
    check_provisioner(&class.at("driverName"), errors);
    let parameters = class.at("parameters");
    check_parameters(&parameters, errors);
    if parameters.count() == 0 {
        errors.push(parameters.required("must contain at least one key/value pair"));
    }
}

fn row(class: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(class).into(), str_at(class, "/driverName").into(), human::age(class, now).into()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{cells, refusals, stored, update_refusals, with};
    use serde_json::json;

    #[test]
    fn driver_and_parameters_are_there_and_stay() {
        let gold = json!({
            "metadata": stored("gold"), "driverName": "driver.longhorn.io", "parameters": { "iops": "9" },
        });
        assert_eq!(refusals(&VOLUME_ATTRIBUTES_CLASS, &gold), [""; 0]);
        assert_eq!(
            refusals(&VOLUME_ATTRIBUTES_CLASS, &json!({})),
            [
                "driverName: Required value",
                "parameters: Required value: must contain at least one key/value pair",
            ]
        );
        let changed = with(gold.clone(), "/parameters/iops", json!("1"));
        assert_eq!(
            update_refusals(&VOLUME_ATTRIBUTES_CLASS, &gold, &changed),
            ["parameters: Forbidden: updates to parameters are forbidden."]
        );
        assert_eq!(cells(&VOLUME_ATTRIBUTES_CLASS, &gold), ["gold", "driver.longhorn.io", "5m12s"]);
    }
}
