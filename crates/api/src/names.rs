//! Kubernetes' rules for names, label keys and values, annotations and config keys, with the texts
//! its API server answers, because clients and people match on them (as of Kubernetes 1.36).
//! Each check returns every complaint, none meaning valid; nothing here knows which field it looks at.

/// Longest DNS label, and longest label value.
pub const DNS_LABEL_MAX: usize = 63;
/// Longest DNS subdomain, and with it the longest name of most kinds.
pub const DNS_SUBDOMAIN_MAX: usize = 253;
/// Longest value of a label.
pub const LABEL_VALUE_MAX: usize = 63;
/// Keys and values of all annotations of one object together.
pub const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;
/// What `generateName` keeps of its prefix, so that a random suffix still fits a DNS label.
pub const GENERATE_NAME_MAX: usize = 58;

const DNS1123_LABEL: Pattern = Pattern {
    rule: "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
           start and end with an alphanumeric character",
    regex: "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
    examples: &["my-name", "123-abc"],
};
const DNS1123_SUBDOMAIN: Pattern = Pattern {
    rule: "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
           must start and end with an alphanumeric character",
    regex: "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
    examples: &["example.com"],
};
const DNS1035_LABEL: Pattern = Pattern {
    rule: "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
           alphabetic character, and end with an alphanumeric character",
    regex: "[a-z]([-a-z0-9]*[a-z0-9])?",
    examples: &["my-name", "abc-123"],
};
const LABEL_KEY: Pattern = Pattern {
    rule: "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
           alphanumeric character",
    regex: "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
    examples: &["MyName", "my.name", "123-abc"],
};
const LABEL_VALUE: Pattern = Pattern {
    rule: "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
           must start and end with an alphanumeric character",
    regex: "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
    examples: &["MyValue", "my_value", "12345"],
};
const CONFIG_KEY: Pattern = Pattern {
    rule: "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    regex: "[-._a-zA-Z0-9]+",
    examples: &["key.name", "KEY_NAME", "key-name"],
};

/// A lower-case RFC 1123 label: namespaces, and names that become host names.
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > DNS_LABEL_MAX {
        problems.push(too_many_characters(DNS_LABEL_MAX));
    }
    if !is_dns1123_label(value) {
        if is_dns1123_subdomain(value) {
            problems.push("must not contain dots".to_owned());
        } else {
            problems.push(DNS1123_LABEL.complaint());
        }
    }
    problems
}

/// A lower-case RFC 1123 subdomain: the name of most kinds.
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > DNS_SUBDOMAIN_MAX {
        problems.push(too_many_characters(DNS_SUBDOMAIN_MAX));
    }
    if !is_dns1123_subdomain(value) {
        problems.push(DNS1123_SUBDOMAIN.complaint());
    }
    problems
}

/// A DNS-1035 label: plural, singular and short names of custom resources.
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > DNS_LABEL_MAX {
        problems.push(too_many_characters(DNS_LABEL_MAX));
    }
    if !(is_dns1123_label(value) && value.starts_with(|c: char| c.is_ascii_lowercase())) {
        problems.push(DNS1035_LABEL.complaint());
    }
    problems
}

/// The weakest rule any name obeys: it fits into one segment of a URL path.
pub fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"].iter().filter(|s| name.contains(**s)).map(|s| format!("may not contain '{s}'")).collect()
}

/// A qualified name, `[prefix/]name`: label keys, annotation keys (lower-cased first), finalizers.
pub fn label_key(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let parts: Vec<&str> = value.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            problems.extend(key_prefix(prefix));
            *name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                LABEL_KEY.complaint()
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_VALUE_MAX {
        problems.push(format!("name part {}", too_many_bytes(LABEL_VALUE_MAX)));
    }
    if !is_label_text(name) {
        problems.push(format!("name part {}", LABEL_KEY.complaint()));
    }
    problems
}

/// The value of a label; may be empty.
pub fn label_value(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > LABEL_VALUE_MAX {
        problems.push(too_many_bytes(LABEL_VALUE_MAX));
    }
    if !value.is_empty() && !is_label_text(value) {
        problems.push(LABEL_VALUE.complaint());
    }
    problems
}

/// The key of an annotation: a label key, except that upper case is allowed in the prefix too.
pub fn annotation_key(key: &str) -> Vec<String> {
    label_key(&key.to_lowercase())
}

/// All annotations of one object together; the error is the text of Kubernetes' size check.
pub fn annotations_size<'a>(
    annotations: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Result<(), String> {
    let size: usize = annotations.into_iter().map(|(key, value)| key.len() + value.len()).sum();
    if size > ANNOTATIONS_MAX_BYTES {
        return Err(format!("annotations size {size} is larger than limit {ANNOTATIONS_MAX_BYTES}"));
    }
    Ok(())
}

/// A key of a ConfigMap or a Secret.
pub fn config_key(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > DNS_SUBDOMAIN_MAX {
        problems.push(too_many_characters(DNS_SUBDOMAIN_MAX));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if value.is_empty() || !value.chars().all(allowed) {
        problems.push(CONFIG_KEY.complaint());
    }
    match value {
        "." | ".." => problems.push(format!("must not be '{value}'")),
        _ if value.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// A `generateName` prefix as it is checked: its last dash will be followed by a suffix, so it counts
/// as if it were a letter.
pub fn mask_generate_name(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            // Kubernetes drops the character before the dash as well; a multi-byte one must not be split.
            let mut masked: String = rest.chars().collect();
            masked.pop();
            masked.push('a');
            masked
        }
        _ => prefix.to_owned(),
    }
}

/// One rule of the Kubernetes documentation, from which the complaint's text is made.
struct Pattern {
    rule: &'static str,
    regex: &'static str,
    examples: &'static [&'static str],
}

impl Pattern {
    fn complaint(&self) -> String {
        let examples: Vec<String> = self.examples.iter().map(|e| format!("'{e}', ")).collect();
        format!("{} (e.g. {}regex used for validation is '{}')", self.rule, examples.join(" or "), self.regex)
    }
}

fn key_prefix(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".to_owned()];
    }
    let mut problems = Vec::new();
    if prefix.len() > DNS_SUBDOMAIN_MAX {
        problems.push(format!("prefix part {}", too_many_bytes(DNS_SUBDOMAIN_MAX)));
    }
    if !is_dns1123_subdomain(prefix) {
        problems.push(format!("prefix part {}", DNS1123_SUBDOMAIN.complaint()));
    }
    problems
}

// Kubernetes counts bytes in both cases, but says so only in its newer checks.
fn too_many_characters(max: usize) -> String {
    format!("must be no more than {max} characters")
}

fn too_many_bytes(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

fn is_dns1123_label(value: &str) -> bool {
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    value.starts_with(lower) && value.ends_with(lower) && value.chars().all(|c| lower(c) || c == '-')
}

fn is_dns1123_subdomain(value: &str) -> bool {
    value.split('.').all(is_dns1123_label)
}

fn is_label_text(value: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_alphanumeric();
    value.starts_with(alphanumeric)
        && value.ends_with(alphanumeric)
        && value.chars().all(|c| alphanumeric(c) || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_with_capitals_is_refused_in_the_words_of_kubernetes() {
        assert_eq!(
            dns1123_subdomain("My-Volume"),
            vec![
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                 and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
                 validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        assert_eq!(
            dns1123_label("My_Space"),
            vec![
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                 start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
                 validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
    }

    #[test]
    fn dots_in_a_label_get_their_own_message() {
        assert_eq!(dns1123_label("a.b"), vec!["must not contain dots"]);
        assert!(dns1123_subdomain("a.b").is_empty());
    }

    #[test]
    fn length_limits_are_inclusive_and_reported_beside_other_problems() {
        assert!(dns1123_label(&"a".repeat(63)).is_empty());
        assert_eq!(dns1123_label(&"a".repeat(64)), vec!["must be no more than 63 characters"]);
        assert!(dns1123_subdomain(&"a".repeat(253)).is_empty());
        assert_eq!(dns1123_subdomain(&"a".repeat(254)), vec!["must be no more than 253 characters"]);
        assert_eq!(dns1123_subdomain(&"A".repeat(254)).len(), 2);
    }

    #[test]
    fn empty_names_and_lone_separators_are_refused() {
        for name in ["", "-", ".", "a.", ".a", "a..b", "a-", "-a", "a.-b"] {
            assert_eq!(dns1123_subdomain(name).len(), 1, "{name:?}");
        }
        assert_eq!(dns1035_label("1a").len(), 1);
        assert!(dns1035_label("a1").is_empty());
    }

    #[test]
    fn label_keys_name_the_part_that_is_wrong() {
        assert!(label_key("harvesterhci.io/imageId").is_empty());
        assert!(label_key("app").is_empty());
        assert_eq!(label_key("/x"), vec!["prefix part must be non-empty"]);
        let without_name = label_key("example.com/");
        assert_eq!(without_name[0], "name part must be non-empty");
        assert!(without_name[1].starts_with("name part must consist of alphanumeric characters"));
        assert!(label_key("a/b/c")[0].ends_with("(e.g. 'example.com/MyName')"));
        assert_eq!(label_key(&"a".repeat(64)), vec!["name part must be no more than 63 bytes"]);
        assert!(label_key("Example.com/x")[0].starts_with("prefix part a lowercase RFC 1123 subdomain"));
        assert!(annotation_key("Example.com/X").is_empty(), "case does not matter for annotations");
    }

    #[test]
    fn label_values_may_be_empty_but_not_long() {
        assert!(label_value("").is_empty());
        assert!(label_value("My_value.1").is_empty());
        assert_eq!(label_value(&"a".repeat(64)), vec!["must be no more than 63 bytes"]);
        assert!(
            label_value("has space")[0].starts_with("a valid label must be an empty string or consist of")
        );
    }

    #[test]
    fn path_segments_and_config_keys_keep_out_of_other_directories() {
        assert_eq!(path_segment(".."), vec!["may not be '..'"]);
        assert_eq!(path_segment("a/b%"), vec!["may not contain '/'", "may not contain '%'"]);
        assert!(path_segment("system:node").is_empty());
        assert_eq!(config_key(".."), vec!["must not be '..'"]);
        assert_eq!(config_key("..data"), vec!["must not start with '..'"]);
        assert!(config_key("ca.crt").is_empty());
        assert_eq!(config_key("").len(), 1);
    }

    #[test]
    fn annotations_have_a_common_budget() {
        let full = [("k".to_owned(), "v".repeat(ANNOTATIONS_MAX_BYTES - 1))];
        assert!(annotations_size(full.iter().map(|(k, v)| (k, v))).is_ok());
        let over = [("key".to_owned(), "v".repeat(ANNOTATIONS_MAX_BYTES))];
        assert_eq!(
            annotations_size(over.iter().map(|(k, v)| (k, v))),
            Err("annotations size 262147 is larger than limit 262144".to_owned())
        );
    }

    #[test]
    fn a_generate_name_may_end_in_a_dash() {
        assert!(dns1123_subdomain(&mask_generate_name("image-")).is_empty());
        assert!(!dns1123_subdomain(&mask_generate_name("-")).is_empty());
        assert_eq!(mask_generate_name("ü-"), "a");
        assert_eq!(mask_generate_name("plain"), "plain");
    }

    proptest! {
        #[test]
        fn every_accepted_label_is_an_accepted_subdomain_and_label_value(value in "[a-z0-9.-]{0,70}") {
            if dns1123_label(&value).is_empty() {
                prop_assert!(dns1123_subdomain(&value).is_empty());
                prop_assert!(label_value(&value).is_empty());
            }
        }

        #[test]
        fn joining_accepted_labels_with_dots_is_accepted(parts in prop::collection::vec("[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", 1..6)) {
            prop_assert!(dns1123_subdomain(&parts.join(".")).is_empty());
        }

        #[test]
        fn no_input_makes_a_check_panic(value in any::<String>()) {
            for check in [dns1123_label, dns1123_subdomain, dns1035_label, path_segment, label_key, label_value,
                          annotation_key, config_key] {
                check(&value);
            }
            dns1123_subdomain(&mask_generate_name(&value));
        }
    }
}
