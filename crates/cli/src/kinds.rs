//! What the API serves: the list of kinds from discovery, and finding one by any of its names.
//! Pure data; reading the API's own description of itself is the work of `discovery`.

use crate::error::{CliError, Result};

/// One kind as the API serves it, in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub verbs: Vec<String>,
    pub namespaced: bool,
}

impl Kind {
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `volume.longhorn.io` or `pod`: how objects of this kind are spoken of.
    pub fn spoken(&self) -> String {
        let name = self.kind.to_ascii_lowercase();
        if self.group.is_empty() { name } else { format!("{name}.{}", self.group) }
    }

    /// `volumes.longhorn.io` or `pods`: the unmistakable name to type.
    pub fn full_plural(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|offered| offered == verb)
    }

    fn is_builtin(&self) -> bool {
        !self.group.contains('.') || self.group.ends_with(".k8s.io")
    }

    fn has_name(&self, name: &str) -> bool {
        self.plural == name || self.singular == name || self.kind.eq_ignore_ascii_case(name)
    }

    fn has_short_name(&self, name: &str) -> bool {
        self.short_names.iter().any(|short| short == name)
    }
}

/// Every kind of the API. Groups, and versions in a group, are in the server's order of preference.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    all: Vec<Kind>,
}

impl Kinds {
    pub fn new(all: Vec<Kind>) -> Self {
        Self { all }
    }

    /// Each kind once, in the version the server prefers.
    pub fn preferred(&self) -> impl Iterator<Item = &Kind> {
        self.all.iter().enumerate().filter_map(|(at, kind)| {
            let seen =
                self.all[..at].iter().any(|other| other.group == kind.group && other.plural == kind.plural);
            (!seen).then_some(kind)
        })
    }

    /// The kind of an object that says its own `apiVersion` and `kind`.
    pub fn of_object(&self, api_version: &str, kind: &str) -> Option<&Kind> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.all.iter().find(|known| known.group == group && known.version == version && known.kind == kind)
    }

    /// The kind with this plural in this group, whichever version is preferred.
    pub fn by_plural(&self, group: &str, plural: &str) -> Option<&Kind> {
        self.all.iter().find(|kind| kind.group == group && kind.plural == plural)
    }

    /// Finds kinds by what a person typed: `pvc`, `Volume`, `volumes.longhorn.io`,
    /// `volumes.v1beta2.longhorn.io`, the start of a group (`settings.harvester`), or a category
    /// (`all`), which is the only case with more than one answer.
    pub fn resolve(&self, asked: &str) -> Result<Vec<&Kind>> {
        let text = asked.to_ascii_lowercase();
        let (name, qualifier) = text.split_once('.').unwrap_or((&text, ""));
        let candidates = self.qualified(qualifier);
        let by_name: Vec<&Kind> = candidates.iter().copied().filter(|kind| kind.has_name(name)).collect();
        let found: Vec<&Kind> = if by_name.is_empty() {
            candidates.iter().copied().filter(|kind| kind.has_short_name(name)).collect()
        } else {
            by_name
        };
        if !found.is_empty() {
            return choose(asked, &found).map(|kind| vec![kind]);
        }
        let of_category: Vec<&Kind> =
            self.preferred().filter(|kind| kind.categories.contains(&text) && kind.can("list")).collect();
        if of_category.is_empty() {
            return Err(CliError::UnknownKind { asked: asked.into(), near: self.near(name) });
        }
        Ok(of_category)
    }

    /// Like [`Kinds::resolve`] where exactly one kind makes sense.
    pub fn resolve_one(&self, asked: &str) -> Result<&Kind> {
        let found = self.resolve(asked)?;
        match found.as_slice() {
            [kind] => Ok(kind),
            many => Err(CliError::AmbiguousKind {
                asked: asked.into(),
                choices: many.iter().map(|kind| kind.full_plural()).collect(),
            }),
        }
    }

    /// Kinds that fit `group`, `version.group`, or the beginning of a group; one version each.
    fn qualified(&self, qualifier: &str) -> Vec<&Kind> {
        if qualifier.is_empty() {
            return self.preferred().collect();
        }
        let in_group: Vec<&Kind> = self.preferred().filter(|kind| kind.group == qualifier).collect();
        if !in_group.is_empty() {
            return in_group;
        }
        let (version, group) = qualifier.split_once('.').unwrap_or((qualifier, ""));
        let in_version: Vec<&Kind> =
            self.all.iter().filter(|kind| kind.group == group && kind.version == version).collect();
        if !in_version.is_empty() {
            return in_version;
        }
        self.preferred().filter(|kind| kind.group.starts_with(qualifier)).collect()
    }

    /// Names close enough to be what was meant, the closest first.
    fn near(&self, name: &str) -> Vec<String> {
        let mut scored: Vec<(usize, String)> = self
            .preferred()
            .filter_map(|kind| {
                let names = [kind.plural.as_str(), kind.singular.as_str()];
                let names = names.into_iter().chain(kind.short_names.iter().map(String::as_str));
                let allowed = |candidate: &str| (candidate.len().max(name.len()) / 3).clamp(1, 3);
                names
                    .filter(|candidate| !candidate.is_empty())
                    .map(|candidate| (edit_distance(name, candidate), candidate))
                    .filter(|(distance, candidate)| *distance <= allowed(candidate))
                    .map(|(distance, _)| (distance, kind.full_plural()))
                    .min()
            })
            .collect();
        scored.sort();
        scored.into_iter().take(3).map(|(_, name)| name).collect()
    }
}

/// Several groups may use one name. Kubernetes' own kinds win, the core group first; between other
/// projects nobody can know what was meant, and guessing would delete the wrong thing one day.
fn choose<'a>(asked: &str, found: &[&'a Kind]) -> Result<&'a Kind> {
    let core = found.iter().find(|kind| kind.group.is_empty());
    let builtin = found.iter().find(|kind| kind.is_builtin());
    match (core.or(builtin), found) {
        (Some(kind), _) | (None, [kind]) => Ok(kind),
        (None, many) => Err(CliError::AmbiguousKind {
            asked: asked.into(),
            choices: many.iter().map(|kind| kind.full_plural()).collect(),
        }),
    }
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
fn edit_distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![vec![0; to.len() + 1]; from.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=to.len()).collect();
    for i in 1..=from.len() {
        for j in 1..=to.len() {
            let replace = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    pub fn kind(group: &str, version: &str, kind: &str, plural: &str, short_names: &[&str]) -> Kind {
        Kind {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            singular: kind.to_ascii_lowercase(),
            short_names: short_names.iter().map(ToString::to_string).collect(),
            categories: vec![],
            verbs: ["get", "list", "watch", "patch", "delete"].map(String::from).to_vec(),
            namespaced: true,
        }
    }

    /// The corner of a storage cluster where names collide.
    pub fn storage_cluster() -> Kinds {
        let mut pods = kind("", "v1", "Pod", "pods", &["po"]);
        pods.categories = vec!["all".into()];
        let mut deployments = kind("apps", "v1", "Deployment", "deployments", &["deploy"]);
        deployments.categories = vec!["all".into()];
        Kinds::new(vec![
            pods,
            kind("", "v1", "Node", "nodes", &["no"]),
            kind("", "v1", "Event", "events", &["ev"]),
            kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", &["pvc"]),
            deployments,
            kind("events.k8s.io", "v1", "Event", "events", &["ev"]),
            kind("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", &[]),
            kind("harvesterhci.io", "v1beta1", "Setting", "settings", &[]),
            kind("longhorn.io", "v1beta2", "Volume", "volumes", &["lhv"]),
            kind("longhorn.io", "v1beta2", "Setting", "settings", &["lhs"]),
            kind("longhorn.io", "v1beta2", "Node", "nodes", &["lhn"]),
            kind("longhorn.io", "v1beta2", "VolumeAttachment", "volumeattachments", &["lhva"]),
            kind("longhorn.io", "v1beta1", "Volume", "volumes", &["lhv"]),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::{testing::storage_cluster, *};
    use crate::exit::Exit;
    use proptest::prelude::*;

    fn found(asked: &str) -> String {
        let kinds = storage_cluster();
        let kind = kinds.resolve_one(asked).unwrap_or_else(|error| panic!("{asked}: {error}"));
        format!("{} {}", kind.full_plural(), kind.version)
    }

    #[test]
    fn a_kind_answers_to_all_its_names() {
        for name in
            ["volumes", "volume", "Volume", "VOLUMES", "lhv", "volumes.longhorn.io", "lhv.longhorn.io"]
        {
            assert_eq!(found(name), "volumes.longhorn.io v1beta2", "asked for {name}");
        }
        assert_eq!(found("pvc"), "persistentvolumeclaims v1");
        assert_eq!(found("PersistentVolumeClaim"), "persistentvolumeclaims v1");
    }

    #[test]
    fn an_older_version_can_be_asked_for() {
        assert_eq!(found("volumes.v1beta1.longhorn.io"), "volumes.longhorn.io v1beta1");
        assert_eq!(found("pods.v1"), "pods v1");
    }

    #[test]
    fn kubernetes_own_kinds_win_over_others_of_the_same_name() {
        assert_eq!(found("nodes"), "nodes v1");
        assert_eq!(found("events"), "events v1");
        assert_eq!(found("ev"), "events v1");
        assert_eq!(found("volumeattachments"), "volumeattachments.storage.k8s.io v1");
        assert_eq!(found("nodes.longhorn.io"), "nodes.longhorn.io v1beta2");
    }

    #[test]
    fn a_name_that_two_projects_use_is_never_guessed() {
        let error = storage_cluster().resolve("settings").unwrap_err();
        assert_eq!(error.exit(), Exit::Usage);
        assert_eq!(
            error.to_string(),
            "\"settings\" could be any of settings.harvesterhci.io, settings.longhorn.io"
        );
        assert_eq!(found("settings.harvester"), "settings.harvesterhci.io v1beta1");
        assert_eq!(found("lhs"), "settings.longhorn.io v1beta2");
    }

    #[test]
    fn a_category_stands_for_its_kinds() {
        let kinds = storage_cluster();
        let all: Vec<String> = kinds.resolve("all").unwrap().iter().map(|kind| kind.full_plural()).collect();
        assert_eq!(all, ["pods", "deployments.apps"]);
        assert!(kinds.resolve_one("all").is_err());
    }

    #[test]
    fn a_mistyped_kind_gets_suggestions() {
        let near = |asked: &str| match storage_cluster().resolve(asked) {
            Err(CliError::UnknownKind { near, .. }) => near,
            other => panic!("{asked} gave {other:?}"),
        };
        assert_eq!(near("volums"), ["volumes.longhorn.io"]);
        assert_eq!(near("ndoes")[0], "nodes");
        assert_eq!(near("pcv"), ["persistentvolumeclaims"]);
        assert_eq!(near("spaceship"), [] as [&str; 0]);
    }

    #[test]
    fn objects_find_their_kind_by_api_version() {
        let kinds = storage_cluster();
        assert_eq!(kinds.of_object("longhorn.io/v1beta1", "Volume").unwrap().version, "v1beta1");
        assert_eq!(kinds.of_object("v1", "Pod").unwrap().plural, "pods");
        assert!(kinds.of_object("v1", "Volume").is_none());
        assert_eq!(kinds.preferred().filter(|kind| kind.plural == "volumes").count(), 1);
    }

    proptest! {
        #[test]
        fn edit_distance_is_a_distance(a in "[a-d]{0,8}", b in "[a-d]{0,8}") {
            let there = edit_distance(&a, &b);
            prop_assert_eq!(there, edit_distance(&b, &a));
            prop_assert_eq!(there == 0, a == b);
            prop_assert!(there <= a.len().max(b.len()));
            prop_assert!(there >= a.len().abs_diff(b.len()));
        }
    }
}
