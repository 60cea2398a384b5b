//! CSIDriver: what a CSI driver on this cluster can and wants.
//!
//! Owns defaults and immutability of this kind. Must never talk to a driver.

use jiff::Timestamp;
use k8s_openapi::api::storage::v1::CSIDriver;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::access::{at, bool_at, fill, fill_zero, list_at, name, str_at, texts_at};
use super::{Builtin, Column, PLAIN, column, human};

pub static CSI_DRIVER: Builtin = Builtin {
    group: "storage.k8s.io",
    kind: "CSIDriver",
    plural: "csidrivers",
    singular: "csidriver",
    has_generation: true,
    needs_version: true,
    schema: CSIDriver::json_schema,
    default,
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
