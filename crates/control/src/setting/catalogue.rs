//! The settings that matter to volumes, with Longhorn's names, defaults and limits. Those without a constant in use
//! are kept and checked for the parts that will read them. Objects with other names are left alone.

/// What the text of a setting may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Switch,
    Number {
        least: u64,
        most: u64,
    },
    Choice(&'static [&'static str]),
    /// Empty, or `<namespace>/<name>` of a network attachment definition.
    Network,
    /// An absolute path.
    Path,
}

#[derive(Clone, Copy, Debug)]
pub struct Definition {
    pub name: &'static str,
    pub default: &'static str,
    pub kind: Kind,
}

/// Why a text cannot be the value of a setting.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("{name} is true or false, not {value:?}")]
    Switch { name: String, value: String },
    #[error("{name} is a number from {least} to {most}, not {value:?}")]
    Number { name: String, least: u64, most: u64, value: String },
    #[error("{name} is one of {}, not {value:?}", .choices.join(", "))]
    Choice { name: String, choices: &'static [&'static str], value: String },
    #[error("{name} is <namespace>/<name> of a NetworkAttachmentDefinition or empty, not {value:?}{why}")]
    Network { name: String, value: String, why: String },
    #[error("{name} is an absolute path, not {value:?}")]
    Path { name: String, value: String },
    #[error("{name} is a text or a JSON object with a text for each data engine, not {value}")]
    PerEngine { name: String, value: String },
}

const PERCENT: Kind = Kind::Number { least: 0, most: 100 };
const SECONDS: Kind = Kind::Number { least: 0, most: u32::MAX as u64 };

const fn switch(name: &'static str, default: &'static str) -> Definition {
    Definition { name, default, kind: Kind::Switch }
}

const fn number(name: &'static str, default: &'static str, least: u64, most: u64) -> Definition {
    Definition { name, default, kind: Kind::Number { least, most } }
}

const fn of(name: &'static str, default: &'static str, kind: Kind) -> Definition {
    Definition { name, default, kind }
}

pub const OVER_PROVISIONING: &str = "storage-over-provisioning-percentage";
pub const MINIMAL_AVAILABLE: &str = "storage-minimal-available-percentage";
pub const SHARE_NODE: &str = "replica-soft-anti-affinity";
pub const SHARE_ZONE: &str = "replica-zone-soft-anti-affinity";
pub const SHARE_DISK: &str = "replica-disk-soft-anti-affinity";
pub const UNTAGGED_ON_TAGGED_NODES: &str = "allow-empty-node-selector-volume";
pub const UNTAGGED_ON_TAGGED_DISKS: &str = "allow-empty-disk-selector-volume";
pub const REPLICA_COUNT: &str = "default-replica-count";
pub const REPLENISHMENT_WAIT: &str = "replica-replenishment-wait-interval";
pub const AUTO_SALVAGE: &str = "auto-salvage";
pub const REBUILDS_PER_NODE: &str = "concurrent-replica-rebuild-per-node-limit";
pub const ENGINE_REPLICA_TIMEOUT: &str = "engine-replica-timeout";
pub const SNAPSHOT_MAX_COUNT: &str = "snapshot-max-count";
pub const DATA_PATH: &str = "default-data-path";
pub const DATA_LOCALITY: &str = "default-data-locality";
pub const RESERVED_ON_DEFAULT_DISK: &str = "storage-reserved-percentage-for-default-disk";
pub use granary_api::constants::longhorn::STORAGE_NETWORK_SETTING as STORAGE_NETWORK;

pub const ALL: &[Definition] = &[
    switch(UNTAGGED_ON_TAGGED_DISKS, "true"),
    switch(UNTAGGED_ON_TAGGED_NODES, "true"),
    switch(AUTO_SALVAGE, "true"),
    number(REBUILDS_PER_NODE, "5", 0, 10_000),
    of(DATA_LOCALITY, "disabled", Kind::Choice(&["disabled", "best-effort", "strict-local"])),
    of(DATA_PATH, "/var/lib/longhorn/", Kind::Path),
    number(REPLICA_COUNT, "3", 1, 20),
    number(ENGINE_REPLICA_TIMEOUT, "8", 8, 30),
    switch(SHARE_DISK, "true"),
    of(REPLENISHMENT_WAIT, "600", SECONDS),
    switch(SHARE_NODE, "false"),
    switch(SHARE_ZONE, "true"),
    number(SNAPSHOT_MAX_COUNT, "250", 2, 250),
    of(MINIMAL_AVAILABLE, "25", PERCENT),
    of(STORAGE_NETWORK, "", Kind::Network),
    number(OVER_PROVISIONING, "100", 0, 1_000_000),
    of(RESERVED_ON_DEFAULT_DISK, "30", PERCENT),
];

pub fn find(name: &str) -> Option<&'static Definition> {
    ALL.iter().find(|definition| definition.name == name)
}

impl Definition {
    /// The text that counts for the classic data engine, checked for every engine it names.
    pub fn check(&self, value: &str) -> Result<String, Unfit> {
        if !value.trim_start().starts_with('{') {
            return self.check_one(value).map(|()| value.to_owned());
        }
        let per_engine: std::collections::BTreeMap<String, String> = serde_json::from_str(value)
            .map_err(|_| Unfit::PerEngine { name: self.name.to_owned(), value: value.to_owned() })?;
        for (engine, value) in &per_engine {
            if !["v1", "v2"].contains(&engine.as_str()) {
                return Err(Unfit::PerEngine { name: self.name.to_owned(), value: value.clone() });
            }
            self.check_one(value)?;
        }
        Ok(per_engine.get("v1").map_or(self.default, String::as_str).to_owned())
    }

    fn check_one(&self, value: &str) -> Result<(), Unfit> {
        let (name, value_of) = (|| self.name.to_owned(), || value.to_owned());
        match self.kind {
            Kind::Switch if ["true", "false"].contains(&value) => Ok(()),
            Kind::Switch => Err(Unfit::Switch { name: name(), value: value_of() }),
            Kind::Number { least, most } => match value.parse::<u64>() {
                Ok(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(Unfit::Number { name: name(), least, most, value: value_of() }),
            },
            Kind::Choice(choices) if choices.contains(&value) => Ok(()),
            Kind::Choice(choices) => Err(Unfit::Choice { name: name(), choices, value: value_of() }),
            Kind::Network if value.is_empty() => Ok(()),
            Kind::Network => super::network::parse(value).map(drop).map_err(|why| Unfit::Network {
                name: name(),
                value: value_of(),
                why,
            }),
            Kind::Path if value.starts_with('/') => Ok(()),
            Kind::Path => Err(Unfit::Path { name: name(), value: value_of() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_value_its_setting_accepts() {
        for definition in ALL {
            assert_eq!(definition.check(definition.default), Ok(definition.default.to_owned()));
        }
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<_> = ALL.iter().map(|definition| definition.name).collect();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn a_value_that_does_not_fit_is_refused_in_words() {
        let refused = |name: &str, value: &str| find(name).unwrap().check(value).unwrap_err().to_string();
        assert_eq!(refused(SHARE_NODE, "yes"), "replica-soft-anti-affinity is true or false, not \"yes\"");
        assert_eq!(
            refused(ENGINE_REPLICA_TIMEOUT, "31"),
            "engine-replica-timeout is a number from 8 to 30, not \"31\""
        );
        assert_eq!(
            refused(DATA_LOCALITY, "near"),
            "default-data-locality is one of disabled, best-effort, strict-local, not \"near\""
        );
        assert!(refused(DATA_PATH, "var").starts_with("default-data-path is an absolute path"));
        for value in ["storage", "/", "a/", "/b", "a/b/c", "Up/x", "a b/c"] {
            assert!(refused(STORAGE_NETWORK, value).contains("<namespace>/<name>"), "{value}");
        }
        assert!(find(STORAGE_NETWORK).unwrap().check("kube-system/storage").is_ok());
    }

    #[test]
    fn a_value_for_each_data_engine_counts_with_its_classic_part() {
        let timeout = find(ENGINE_REPLICA_TIMEOUT).unwrap();
        assert_eq!(timeout.check(r#"{"v1":"9","v2":"10"}"#).unwrap(), "9");
        assert_eq!(timeout.check(r#"{"v2":"10"}"#).unwrap(), "8", "what is not named keeps its default");
        assert!(timeout.check(r#"{"v1":"9","v2":"99"}"#).is_err());
        assert!(timeout.check(r#"{"v3":"9"}"#).is_err());
        assert!(timeout.check("{9}").is_err());
    }
}
