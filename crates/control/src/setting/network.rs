//! The storage network as a setting names it: a reference to a definition, and whether that one can be used.

use granary_api::cni::NetworkAttachmentDefinition;
use granary_api::names;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkName {
    pub namespace: String,
    pub name: String,
}

/// The reason is a text to be put after the value.
pub fn parse(value: &str) -> Result<NetworkName, String> {
    let Some((namespace, name)) = value.split_once('/') else {
        return Err(String::new());
    };
    let mut problems: Vec<String> =
        names::dns1123_label(namespace).into_iter().map(|why| format!("namespace: {why}")).collect();
    problems.extend(names::dns1123_subdomain(name).into_iter().map(|why| format!("name: {why}")));
    if problems.is_empty() {
        return Ok(NetworkName { namespace: namespace.to_owned(), name: name.to_owned() });
    }
    Err(format!(" ({})", problems.join("; ")))
}

/// A pod that asks for a network whose configuration is no configuration never starts.
pub fn check_definition(definition: &NetworkAttachmentDefinition) -> Result<(), String> {
    let config = definition.spec.config.as_deref().unwrap_or_default();
    // Multus then looks for a file on each node, which cannot be seen from here.
    if config.is_empty() {
        return Ok(());
    }
    let config: serde_json::Value =
        serde_json::from_str(config).map_err(|error| format!("its config is not JSON: {error}"))?;
    let has_type = |value: &serde_json::Value| value["type"].as_str().is_some_and(|kind| !kind.is_empty());
    let first = config["plugins"].as_array().and_then(|plugins| plugins.first());
    if has_type(&config) || first.is_some_and(has_type) {
        return Ok(());
    }
    Err("its config names no type of plugin".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(config: &str) -> NetworkAttachmentDefinition {
        let mut definition = NetworkAttachmentDefinition::default();
        definition.spec.config = Some(config.to_owned());
        definition
    }

    #[test]
    fn a_definition_must_say_which_plugin_makes_the_network() {
        assert_eq!(check_definition(&definition(r#"{"type":"bridge"}"#)), Ok(()));
        assert_eq!(check_definition(&definition(r#"{"plugins":[{"type":"macvlan"}]}"#)), Ok(()));
        assert_eq!(check_definition(&NetworkAttachmentDefinition::default()), Ok(()), "a file on the nodes");
        assert!(check_definition(&definition("bridge")).unwrap_err().starts_with("its config is not JSON"));
        for config in [r#"{"type":""}"#, r#"{"plugins":[]}"#, "[]", "{}"] {
            assert_eq!(
                check_definition(&definition(config)),
                Err("its config names no type of plugin".into()),
                "{config}"
            );
        }
    }

    #[test]
    fn both_halves_of_a_reference_are_names() {
        let network = parse("default/storage.lan").unwrap();
        assert_eq!((network.namespace.as_str(), network.name.as_str()), ("default", "storage.lan"));
        assert_eq!(parse("storage"), Err(String::new()));
        assert!(parse("a/b/c").unwrap_err().contains("name: "));
        assert!(parse("/b").unwrap_err().contains("namespace: "));
    }
}
