//! Questions that are answered and not stored: who am I, what may I do, whose token is this.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Answer, Api, Call};
use crate::auth::{Authenticator, Identity};
use crate::error::{ApiError, Result};
use crate::schema;

impl Api {
    pub fn review(&self, call: &Call, mut body: Value, authenticator: &Authenticator) -> Result<Answer> {
        if !body.is_object() {
            return Err(ApiError::bad_request("the object provided is not a JSON object"));
        }
        let (kind, version) = (&call.resource.kind, &call.resource.version);
        if let Some(text) = schema::type_errors(&call.resource.schema, &body) {
            return Err(ApiError::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: {text}"
            )));
        }
        let status = match call.resource.kind.as_str() {
            "SelfSubjectReview" => json!({ "userInfo": user_info(&call.user) }),
            "SelfSubjectAccessReview" => access(&body, &call.user),
            "SubjectAccessReview" => {
                let groups = body["spec"]["groups"].as_array().map(Vec::as_slice).unwrap_or_default();
                match authenticator.subject(body["spec"]["user"].as_str().unwrap_or_default(), groups) {
                    Some(user) => access(&body, &user),
                    None => json!({ "allowed": false, "reason": "this server knows no such user" }),
                }
            }
            "SelfSubjectRulesReview" => rules(&call.user),
            "TokenReview" => match authenticator.identify(body["spec"]["token"].as_str().unwrap_or_default())
            {
                Some(user) => json!({ "authenticated": true, "user": user_info(&user) }),
                None => json!({ "authenticated": false, "user": {} }),
            },
            _ => return Err(ApiError::no_such_path()),
        };
        body["apiVersion"] = call.resource.api_version().into();
        body["kind"] = call.resource.kind.as_str().into();
        body["status"] = status;
        Ok(Answer::Object(StatusCode::CREATED, body))
    }
}

fn user_info(user: &Identity) -> Value {
    json!({ "username": user.user, "groups": user.groups() })
}

fn access(body: &Value, user: &Identity) -> Value {
    let spec = &body["spec"];
    let allowed = if let Some(path) = spec["nonResourceAttributes"].as_object() {
        user.may(path.get("verb").and_then(Value::as_str).unwrap_or_default(), "", "")
    } else {
        let text = |key: &str| spec["resourceAttributes"][key].as_str().unwrap_or_default();
        user.may(text("verb"), text("group"), text("resource"))
    };
    json!({ "allowed": allowed })
}

fn rules(user: &Identity) -> Value {
    let all = user.may("delete", "*", "*");
    let verbs = if all { json!(["*"]) } else { json!(["get", "list", "watch"]) };
    json!({
        "resourceRules": [{ "verbs": verbs, "apiGroups": ["*"], "resources": ["*"] }],
        "nonResourceRules": [{ "verbs": verbs, "nonResourceURLs": ["*"] }],
        "incomplete": false,
    })
}
