//! At the start: every setting of the catalogue exists. A value that somebody chose is never changed.

use granary_api::longhorn::{Setting, SettingSpec};
use kube::api::{Api, PostParams};

use super::catalogue;

/// Makes the settings that are missing in the namespace of `settings`.
pub async fn ensure(settings: &Api<Setting>) -> kube::Result<()> {
    for definition in catalogue::ALL {
        let fields = SettingSpec { value: definition.default.to_owned(), ..SettingSpec::default() };
        let setting = Setting::new(definition.name, fields);
        match settings.create(&PostParams::default(), &setting).await {
            Ok(_) => tracing::info!(setting = definition.name, value = definition.default, "made a setting"),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
