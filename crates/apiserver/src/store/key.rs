//! The address of an object in the store: resource, namespace, name, in the order lists are read.
//!
//! Owns the spelling of keys. Must never hold anything but the three parts.

use std::fmt;

/// `<plural>.<group>/<namespace>/<name>`; cluster-scoped objects have an empty namespace, the core group an
/// empty group. No part can contain a slash, so the spelling is unambiguous and prefixes are exact.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Box<str>);

impl Key {
    pub fn new(resource: &str, namespace: &str, name: &str) -> Self {
        Self(format!("{resource}/{namespace}/{name}").into())
    }

    /// Reads a stored key back.
    pub(super) fn from_stored(text: &str) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `<plural>.<group>`.
    pub fn resource(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }

    pub fn namespace(&self) -> &str {
        self.0.split('/').nth(1).unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The keys of one resource, or of one resource in one namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(Box<str>);

impl Prefix {
    pub fn resource(resource: &str) -> Self {
        Self(format!("{resource}/").into())
    }

    pub fn namespace(resource: &str, namespace: &str) -> Self {
        Self(format!("{resource}/{namespace}/").into())
    }

    /// Only this key, and longer ones that a filter drops.
    pub fn exact(key: &Key) -> Self {
        Self(key.0.clone())
    }

    /// Every object there is.
    pub fn everything() -> Self {
        Self("".into())
    }

    pub fn covers(&self, key: &Key) -> bool {
        key.0.starts_with(&*self.0)
    }

    /// The first key of the range.
    pub fn start(&self) -> &str {
        &self.0
    }

    /// The first string after the range. Keys are ASCII up to `~`, so the highest byte that may follow the
    /// prefix is below DEL.
    pub fn end(&self) -> String {
        format!("{}\u{7f}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Prefix};

    #[test]
    fn a_key_gives_its_parts_back() {
        let key = Key::new("volumes.longhorn.io", "longhorn-system", "v1");
        assert_eq!(
            (key.resource(), key.namespace(), key.name()),
            ("volumes.longhorn.io", "longhorn-system", "v1")
        );
        let node = Key::new("nodes.", "", "n1");
        assert_eq!((node.resource(), node.namespace(), node.name()), ("nodes.", "", "n1"));
    }

    #[test]
    fn a_prefix_covers_its_namespace_and_no_neighbour() {
        let prefix = Prefix::namespace("pods.", "a");
        assert!(prefix.covers(&Key::new("pods.", "a", "x")));
        assert!(!prefix.covers(&Key::new("pods.", "a-b", "x")));
        assert!(!Prefix::resource("pods.").covers(&Key::new("pods.metrics.io", "a", "x")));
        let end = prefix.end();
        assert!(Key::new("pods.", "a", "zzz").as_str() < end.as_str());
        assert!(Key::new("pods.", "b", "x").as_str() > end.as_str());
    }
}
