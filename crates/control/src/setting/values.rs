//! The values of all settings at one moment. A value that does not fit, or that is missing, counts as the default.

use std::collections::BTreeMap;

use granary_api::longhorn::Setting;
use kube::ResourceExt;

use super::catalogue;

#[derive(Clone, Debug, Default)]
pub struct Values(BTreeMap<String, String>);

impl Values {
    pub fn of<'a>(settings: impl IntoIterator<Item = &'a Setting>) -> Self {
        let values = settings.into_iter().filter_map(|setting| {
            let name = setting.name_any();
            let value = catalogue::find(&name)?.check(&setting.spec.value).ok()?;
            Some((name, value))
        });
        Self(values.collect())
    }

    pub fn text(&self, name: &str) -> &str {
        match self.0.get(name) {
            Some(value) => value,
            None => catalogue::find(name).map_or("", |definition| definition.default),
        }
    }

    pub fn is_on(&self, name: &str) -> bool {
        self.text(name) == "true"
    }

    pub fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }
}
