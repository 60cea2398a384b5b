//! From a command line to the objects it means, for commands that act on each one: by name, by
//! label, all of a kind, or those in files. It asks the API for names, never changes anything.

use std::path::PathBuf;

use serde_json::Value;

use crate::{
    error::{CliError, Result},
    format::spoken_name,
    kinds::Kind,
    manifest::{self, Manifest},
    request::Address,
    session::{Filter, Session},
    targets,
};

/// One object of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRef {
    pub kind: Kind,
    /// `None` for kinds without namespaces.
    pub namespace: Option<String>,
    pub name: String,
}

impl std::fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&spoken_name(&self.kind, &self.name))
    }
}

impl ObjectRef {
    pub fn address(&self) -> Address {
        Address::object(&self.kind, self.namespace.as_deref(), &self.name)
    }

    pub fn collection(&self) -> Address {
        Address::collection(&self.kind, self.namespace.as_deref())
    }

    /// What to say when it does not exist: often it is only somewhere else.
    pub fn not_found(&self, session: &Session) -> CliError {
        let by_default = |name: &&String| !session.namespace_is_explicit && **name == session.namespace;
        let elsewhere = self.namespace.as_ref().filter(by_default);
        CliError::NotFound {
            object: self.to_string(),
            hint: elsewhere.map(|name| format!("looked in namespace {name:?}; -n NAME looks in another")),
        }
    }

    /// The command that shows what is wrong with it.
    pub fn describe_command(&self) -> String {
        let namespace = self.namespace.as_ref().map(|name| format!(" -n {name}")).unwrap_or_default();
        format!("granary describe {self}{namespace}")
    }
}

/// What the user gave to select objects.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    pub words: Vec<String>,
    pub files: Vec<PathBuf>,
    pub recursive: bool,
    pub filter: Filter,
    pub all: bool,
    pub all_namespaces: bool,
}

impl Selection {
    /// Refuses combinations that could mean more than the user thinks.
    fn check(&self) -> Result<()> {
        let by_filter = self.all || self.filter.labels.is_some() || self.filter.fields.is_some();
        let usage = |text: &str| Err(CliError::Usage(text.into()));
        match (self.files.is_empty(), self.words.is_empty()) {
            (true, true) => return usage("name objects (KIND NAME, KIND/NAME) or files (-f FILE)"),
            (false, false) => return usage("name objects or files, not both"),
            (false, true) if by_filter || self.all_namespaces => {
                return usage("-f takes every object of the files; -l, --all and -A do not go with it");
            }
            _ => {}
        }
        let named = self.words.len() > 1 || self.words.iter().any(|word| word.contains('/'));
        if named && by_filter {
            return usage("give names, or a selector, or --all");
        }
        if named && self.all_namespaces {
            return usage("an object with a name is in one namespace: use -n, not -A");
        }
        if self.files.is_empty() && !named && !by_filter {
            return usage("name the objects, or select them with -l SELECTOR or --all");
        }
        if self.all && self.filter.labels.is_some() {
            return usage("--all and -l contradict each other");
        }
        Ok(())
    }

    /// The objects, in the order of the command line or the files. One in a file whose kind the API
    /// does not have is an error of its own, so that the others can go ahead.
    pub async fn resolve(&self, session: &Session) -> Result<Vec<Result<ObjectRef>>> {
        self.check()?;
        if !self.files.is_empty() {
            let manifests = manifest::read_all(&self.files, self.recursive)?;
            let mut objects = Vec::new();
            for manifest in &manifests {
                objects.push(object_of(session, manifest).await);
            }
            return Ok(objects);
        }
        let mut objects = Vec::new();
        for target in targets::parse(&self.words, session.kinds().await?)? {
            let namespace = session.scope(&target.kind, self.all_namespaces);
            if target.names.is_empty() {
                let address = self.filter.apply(Address::collection(&target.kind, namespace));
                for object in session.list(address).await? {
                    objects.extend(reference(&target.kind, &object).map(Ok));
                }
            } else {
                let namespace = namespace.map(String::from);
                objects.extend(target.names.into_iter().map(|name| {
                    Ok(ObjectRef { kind: target.kind.clone(), namespace: namespace.clone(), name })
                }));
            }
        }
        Ok(objects)
    }
}

/// The reference to an object that the API returned.
pub fn reference(kind: &Kind, object: &Value) -> Option<ObjectRef> {
    let metadata = &object["metadata"];
    let namespace = metadata["namespace"].as_str().map(String::from);
    Some(ObjectRef { kind: kind.clone(), namespace, name: metadata["name"].as_str()?.into() })
}

/// The reference to an object in a file: its own namespace, else the one of the command.
pub async fn object_of(session: &Session, manifest: &Manifest) -> Result<ObjectRef> {
    let kinds = session.kinds().await?;
    let Some(kind) = kinds.of_object(manifest.api_version(), manifest.kind()) else {
        let reason = match kinds.resolve(manifest.kind()) {
            Ok(known) if known.len() == 1 => {
                format!("the API has {} only as {};", manifest.kind(), known[0].api_version())
            }
            _ => "is its CustomResourceDefinition installed?".into(),
        };
        return Err(CliError::NotFound {
            object: format!("{}: kind {} in {}", manifest.place, manifest.kind(), manifest.api_version()),
            hint: Some(format!("{reason} `granary kinds` lists what this API serves")),
        });
    };
    let namespace = match (kind.namespaced, manifest.namespace()) {
        (false, _) => None,
        (true, None) => Some(session.namespace.clone()),
        (true, Some(own)) if session.namespace_is_explicit && own != session.namespace => {
            return Err(manifest.error(format!(
                "{} {} is in namespace {own:?}, but -n says {:?}",
                manifest.kind(),
                manifest.name(),
                session.namespace
            )));
        }
        (true, Some(own)) => Some(own.to_owned()),
    };
    Ok(ObjectRef { kind: kind.clone(), namespace, name: manifest.name().into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn a_selection_must_say_what_it_selects() {
        let ok = |selection: Selection| selection.check().is_ok();
        let labels = Filter { labels: Some("a=b".into()), fields: None };
        let base = Selection::default;

        assert!(!ok(base()));
        assert!(!ok(Selection { words: words("pods"), ..base() }), "a bare kind must not mean all of them");
        assert!(ok(Selection { words: words("pods"), all: true, ..base() }));
        assert!(ok(Selection { words: words("pods"), filter: labels.clone(), ..base() }));
        assert!(ok(Selection { words: words("pods a b"), ..base() }));
        assert!(ok(Selection { words: words("pod/a"), ..base() }));
        assert!(!ok(Selection { words: words("pods a"), all: true, ..base() }));
        assert!(!ok(Selection { words: words("pod/a"), filter: labels.clone(), ..base() }));
        assert!(!ok(Selection { words: words("pods a"), all_namespaces: true, ..base() }));
        assert!(!ok(Selection { words: words("pods"), all: true, filter: labels, ..base() }));
        assert!(ok(Selection { files: vec!["f".into()], ..base() }));
        assert!(!ok(Selection { files: vec!["f".into()], words: words("pods a"), ..base() }));
        assert!(!ok(Selection { files: vec!["f".into()], all: true, ..base() }));
    }
}
