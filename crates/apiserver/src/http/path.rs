//! Which object, list or document a URL path names.
//!
//! Owns the URL space of the API. Must never look anything up.

/// The target of a request below `/api` or `/apis`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    pub group: String,
    pub version: String,
    pub resource: String,
    pub namespace: String,
    /// Empty for a collection.
    pub name: String,
    /// `status`, `scale`, `finalize`, …; empty for the object itself.
    pub subresource: String,
    /// The path was of the old `/watch/` form.
    pub watch: bool,
}

/// What lies at a path of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// `/api`: versions of the core group.
    CoreVersions,
    /// `/apis`: all groups.
    Groups,
    /// `/apis/<group>`.
    Group(String),
    /// `/api/v1` or `/apis/<group>/<version>`: the resources of one version.
    Resources {
        group: String,
        version: String,
    },
    Resource(Target),
}

impl Place {
    /// `None` when the path is not one of the API's.
    pub fn parse(path: &str) -> Option<Self> {
        let decoded: Option<Vec<String>> = path.trim_matches('/').split('/').map(percent_decode).collect();
        let parts = decoded?;
        let mut parts = parts.iter().map(String::as_str);
        let (group, version) = match parts.next()? {
            "api" => match parts.next() {
                None => return Some(Self::CoreVersions),
                Some(version) => (String::new(), version.to_string()),
            },
            "apis" => match (parts.next(), parts.next()) {
                (None, _) => return Some(Self::Groups),
                (Some(group), None) => return Some(Self::Group(group.to_string())),
                (Some(group), Some(version)) => (group.to_string(), version.to_string()),
            },
            _ => return None,
        };
        let rest: Vec<&str> = parts.collect();
        if rest.is_empty() {
            return Some(Self::Resources { group, version });
        }
        Target::parse(group, version, &rest).map(Self::Resource)
    }
}

impl Target {
    fn parse(group: String, version: String, rest: &[&str]) -> Option<Self> {
        let (watch, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            rest => (false, rest),
        };
        if rest.iter().any(|part| part.is_empty()) {
            return None;
        }
        let mut target = Self { group, version, watch, ..Self::default() };
        let core_namespace = target.group.is_empty();
        match rest {
            // Namespaces are objects themselves; only their known subresources are not resources inside them.
            ["namespaces", name, sub @ ("status" | "finalize")] if core_namespace => {
                target.resource = "namespaces".into();
                target.name = (*name).into();
                target.subresource = (*sub).into();
            }
            ["namespaces", namespace, resource, object @ ..] => {
                target.namespace = (*namespace).into();
                target.resource = (*resource).into();
                target.object(object)?;
            }
            [resource, object @ ..] => {
                target.resource = (*resource).into();
                target.object(object)?;
            }
            [] => return None,
        }
        Some(target)
    }

    fn object(&mut self, rest: &[&str]) -> Option<()> {
        match rest {
            [] => {}
            [name] => self.name = (*name).into(),
            [name, subresource] => {
                self.name = (*name).into();
                self.subresource = (*subresource).into();
            }
            _ => return None,
        }
        Some(())
    }
}

/// Decodes `%41`-style escapes; `None` when the result is not text or would hide a path separator.
fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_string());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = (rest.next()? as char).to_digit(16)?;
            let low = (rest.next()? as char).to_digit(16)?;
            bytes.push((high * 16 + low) as u8);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().filter(|s| !s.contains('/') && !s.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::{Place, Target};

    fn target(path: &str) -> Target {
        match Place::parse(path) {
            Some(Place::Resource(target)) => target,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn discovery_paths_are_told_from_objects() {
        assert_eq!(Place::parse("/api"), Some(Place::CoreVersions));
        assert_eq!(Place::parse("/apis/"), Some(Place::Groups));
        assert_eq!(Place::parse("/apis/storage.k8s.io"), Some(Place::Group("storage.k8s.io".into())));
        assert_eq!(
            Place::parse("/api/v1"),
            Some(Place::Resources { group: String::new(), version: "v1".into() })
        );
        assert_eq!(Place::parse("/healthz"), None);
    }

    #[test]
    fn namespaced_and_cluster_objects_and_their_subresources() {
        let pod = target("/api/v1/namespaces/prod/pods/web/status");
        assert_eq!((pod.namespace.as_str(), pod.resource.as_str()), ("prod", "pods"));
        assert_eq!((pod.name.as_str(), pod.subresource.as_str()), ("web", "status"));
        let all = target("/apis/longhorn.io/v1beta2/volumes");
        assert_eq!((all.group.as_str(), all.name.as_str()), ("longhorn.io", ""));
        let namespace = target("/api/v1/namespaces/prod");
        assert_eq!((namespace.resource.as_str(), namespace.name.as_str()), ("namespaces", "prod"));
        assert_eq!(target("/api/v1/namespaces/prod/finalize").subresource, "finalize");
        assert!(target("/api/v1/watch/pods").watch);
    }

    #[test]
    fn escapes_are_decoded_but_cannot_smuggle_a_slash() {
        assert_eq!(target("/api/v1/nodes/a%2db").name, "a-b");
        assert_eq!(Place::parse("/api/v1/nodes/a%2fb"), None);
        assert_eq!(Place::parse("/api/v1/nodes/%ff"), None);
        assert_eq!(Place::parse("/api/v1/nodes/a/b/c"), None);
    }
}
