//! Who makes a request and what that role may do.
//!
//! Must never look at a token; that is the authenticator's.

use serde::{Deserialize, Serialize};

/// What a user may do. Kubernetes' RBAC is for clusters; one machine needs these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Everything.
    Admin,
    /// Look at everything but secrets.
    ReadOnly,
}

impl Role {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "admin" => Some(Self::Admin),
            "read-only" => Some(Self::ReadOnly),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::ReadOnly => "read-only",
        }
    }

    pub fn group(self) -> &'static str {
        match self {
            Self::Admin => "system:masters",
            Self::ReadOnly => "granary:viewers",
        }
    }
}

/// The authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub user: String,
    pub role: Role,
}

impl Identity {
    /// A part of this process, such as a controller.
    pub fn component(name: &str) -> Self {
        Self { user: format!("system:granary:{name}"), role: Role::Admin }
    }

    pub fn groups(&self) -> [&'static str; 2] {
        [self.role.group(), "system:authenticated"]
    }

    /// Whether the role may do `verb` on `resource` of `group`.
    pub fn may(&self, verb: &str, group: &str, resource: &str) -> bool {
        match self.role {
            Role::Admin => true,
            Role::ReadOnly => {
                let reads = matches!(verb, "get" | "list" | "watch");
                let reviews = verb == "create"
                    && matches!(group, "authorization.k8s.io" | "authentication.k8s.io")
                    && resource.starts_with("self");
                (reads && !(group.is_empty() && resource == "secrets")) || reviews
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Identity, Role};

    #[test]
    fn a_reader_sees_everything_but_secrets_and_changes_nothing() {
        let reader = Identity { user: "eve".into(), role: Role::ReadOnly };
        for (verb, group, resource, allowed) in [
            ("get", "", "pods", true),
            ("watch", "longhorn.io", "volumes", true),
            ("list", "", "secrets", false),
            ("create", "", "configmaps", false),
            ("delete", "longhorn.io", "volumes", false),
            ("create", "authorization.k8s.io", "selfsubjectaccessreviews", true),
            ("create", "authentication.k8s.io", "tokenreviews", false),
        ] {
            assert_eq!(reader.may(verb, group, resource), allowed, "{verb} {resource}.{group}");
        }
        assert!(Identity::component("gc").may("delete", "", "secrets"));
    }
}
