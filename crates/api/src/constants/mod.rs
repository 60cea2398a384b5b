//! Keys of labels and annotations, finalizers and well-known names, by the system that defined them.
//! Plain constants; what they mean to Granary is decided where they are used.

pub mod cdi;
pub mod cni;
pub mod harvester;
pub mod kubernetes;
pub mod longhorn;

#[cfg(test)]
mod tests {
    use crate::names;

    const SOURCES: [&str; 5] = [
        include_str!("cdi.rs"),
        include_str!("cni.rs"),
        include_str!("harvester.rs"),
        include_str!("kubernetes.rs"),
        include_str!("longhorn.rs"),
    ];

    /// Name and text of every string constant, however it is broken over lines.
    fn constants() -> Vec<(&'static str, &'static str)> {
        SOURCES
            .iter()
            .flat_map(|source| source.split("pub const ").skip(1))
            .filter_map(|item| Some((item.split_once(": &str")?.0, item.split('"').nth(1)?)))
            .collect()
    }

    #[test]
    fn every_key_is_one_that_the_api_server_accepts() {
        let all = constants();
        let keys: Vec<_> = all
            .iter()
            .filter(|(name, _)| ["_ANNOTATION", "_LABEL", "FINALIZER"].iter().any(|end| name.ends_with(end)))
            .collect();
        assert!(keys.len() > 80, "found only {}", keys.len());
        for (name, key) in keys {
            let problems = if name.ends_with("_ANNOTATION") {
                names::annotation_key(key)
            } else {
                names::label_key(key)
            };
            assert!(problems.is_empty(), "{name} = {key}: {problems:?}");
        }
    }

    #[test]
    fn namespaces_and_object_names_are_valid_names() {
        let names = constants()
            .into_iter()
            .filter(|(name, _)| name.ends_with("_NAME") || name.ends_with("_NAMESPACE"));
        for (constant, name) in names {
            assert!(names::dns1123_subdomain(name).is_empty(), "{constant} = {name}");
        }
    }
}
