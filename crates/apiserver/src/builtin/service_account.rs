//! ServiceAccount: who a pod is.
//!
//! Owns the names of this kind; it has no rules beyond its schema. Must never make tokens.

use k8s_openapi::api::core::v1::ServiceAccount;
use schemars::JsonSchema;

use super::{Builtin, PLAIN};

pub static SERVICE_ACCOUNT: Builtin = Builtin {
    kind: "ServiceAccount",
    plural: "serviceaccounts",
    singular: "serviceaccount",
    short_names: &["sa"],
    namespaced: true,
    schema: ServiceAccount::json_schema,
    ..PLAIN
};
