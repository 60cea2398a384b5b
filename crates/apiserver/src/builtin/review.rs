//! Reviews: questions to the server that are answered at once and never stored.
//!
//! Owns their names and schemas. Must never answer; authentication and authorization do that.

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenReview};
use k8s_openapi::api::authorization::v1::{
    SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview,
};
use schemars::JsonSchema;

use super::{Builtin, PLAIN};

/// Every kind that can be created but not read back.
pub static REVIEWS: &[&Builtin] = &[
    &Builtin {
        group: "authentication.k8s.io",
        kind: "SelfSubjectReview",
        plural: "selfsubjectreviews",
        singular: "selfsubjectreview",
        schema: SelfSubjectReview::json_schema,
        ..PLAIN
    },
    &Builtin {
        group: "authentication.k8s.io",
        kind: "TokenReview",
        plural: "tokenreviews",
        singular: "tokenreview",
        schema: TokenReview::json_schema,
        ..PLAIN
    },
    &Builtin {
        group: "authorization.k8s.io",
        kind: "SelfSubjectAccessReview",
        plural: "selfsubjectaccessreviews",
        singular: "selfsubjectaccessreview",
        schema: SelfSubjectAccessReview::json_schema,
        ..PLAIN
    },
    &Builtin {
        group: "authorization.k8s.io",
        kind: "SelfSubjectRulesReview",
        plural: "selfsubjectrulesreviews",
        singular: "selfsubjectrulesreview",
        schema: SelfSubjectRulesReview::json_schema,
        ..PLAIN
    },
    &Builtin {
        group: "authorization.k8s.io",
        kind: "SubjectAccessReview",
        plural: "subjectaccessreviews",
        singular: "subjectaccessreview",
        schema: SubjectAccessReview::json_schema,
        ..PLAIN
    },
];
