//! Whole objects as JSON, YAML or names. Lists are written item by item, so that a list of any
//! length needs no more memory than one page of it.

use std::io;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use crate::{
    error::{CliError, Result},
    kinds::Kind,
    output::Output,
};

/// `-o` of commands that show objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Json,
    Yaml,
    /// Only kind/name, one per line
    Name,
    /// A table with more columns
    Wide,
}

/// `-o` of commands that report something of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    Json,
    Yaml,
}

/// `kind.group/name` of an object.
pub fn spoken_name(kind: &Kind, name: &str) -> String {
    format!("{}/{name}", kind.spoken())
}

/// Who owns which field fills pages and is of no use to a reader.
pub fn without_managed_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

pub fn to_json(value: &impl Serialize) -> Result<String> {
    let mut bytes = Vec::new();
    let indent = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, indent);
    value.serialize(&mut serializer).map_err(|error| CliError::Output(error.into()))?;
    String::from_utf8(bytes).map_err(|error| CliError::Output(io::Error::other(error)))
}

pub fn to_yaml(value: &impl Serialize) -> Result<String> {
    // Long lines are not folded: folding changes nothing for a parser but much for a reader.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    serde_saphyr::to_string_with_options(value, options)
        .map_err(|error| CliError::Output(io::Error::other(error)))
}

/// Writes one object, or the parts of a report.
pub fn write_report(output: &mut Output, format: ReportFormat, value: &impl Serialize) -> Result<()> {
    match format {
        ReportFormat::Json => output.line(to_json(value)?)?,
        ReportFormat::Yaml => output.text(&to_yaml(value)?)?,
    }
    Ok(())
}

/// Writes a `List` object as its items arrive.
pub struct ListWriter {
    format: ReportFormat,
    empty: bool,
}

impl ListWriter {
    pub fn begin(output: &mut Output, format: ReportFormat) -> Result<Self> {
        match format {
            ReportFormat::Json => output.text("{\n    \"apiVersion\": \"v1\",\n    \"items\": [")?,
            ReportFormat::Yaml => output.text("apiVersion: v1\nitems:")?,
        }
        Ok(Self { format, empty: true })
    }

    pub fn item(&mut self, output: &mut Output, object: &Value) -> Result<()> {
        let first = std::mem::replace(&mut self.empty, false);
        match self.format {
            ReportFormat::Json => {
                output.text(if first { "\n        " } else { ",\n        " })?;
                output.text(&to_json(object)?.replace('\n', "\n        "))?;
            }
            ReportFormat::Yaml => {
                for (at, line) in to_yaml(object)?.lines().enumerate() {
                    let lead = if at == 0 { "\n- " } else { "\n  " };
                    // A blank line of a block of text stays blank.
                    output.text(if line.is_empty() { "\n" } else { lead })?;
                    output.text(line)?;
                }
            }
        }
        Ok(())
    }

    pub fn end(self, output: &mut Output) -> Result<()> {
        let close = match (self.format, self.empty) {
            (ReportFormat::Json, true) => "],\n",
            (ReportFormat::Json, false) => "\n    ],\n",
            (ReportFormat::Yaml, true) => " []\n",
            (ReportFormat::Yaml, false) => "\n",
        };
        output.text(close)?;
        output.text(match self.format {
            ReportFormat::Json => {
                "    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n"
            }
            ReportFormat::Yaml => "kind: List\nmetadata:\n  resourceVersion: \"\"\n",
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::testing::captured;
    use proptest::prelude::*;
    use serde_json::json;

    fn listed(format: ReportFormat, items: &[Value]) -> String {
        let (mut output, out, _) = captured();
        let mut list = ListWriter::begin(&mut output, format).unwrap();
        for item in items {
            list.item(&mut output, item).unwrap();
        }
        list.end(&mut output).unwrap();
        out.text()
    }

    fn script() -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
            "data": {"run.sh": "#!/bin/sh\n\n  echo hi\n", "esc": "\u{1b}[31m", "no": "yes", "n": "0644", "empty": ""},
        })
    }

    #[test]
    fn a_list_is_one_document_however_many_items_it_has() {
        for count in [0, 1, 3] {
            let items = vec![script(); count];
            let expected = json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items});
            let json: Value = serde_json::from_str(&listed(ReportFormat::Json, &items)).unwrap();
            assert_eq!(json, expected);
            let yaml: Value = serde_saphyr::from_str(&listed(ReportFormat::Yaml, &items)).unwrap();
            assert_eq!(yaml, expected);
        }
    }

    #[test]
    fn lists_look_as_kubectl_writes_them() {
        let item = json!({"kind": "Pod", "spec": {"a": [1]}});
        insta::assert_snapshot!(listed(ReportFormat::Json, std::slice::from_ref(&item)), @r#"
        {
            "apiVersion": "v1",
            "items": [
                {
                    "kind": "Pod",
                    "spec": {
                        "a": [
                            1
                        ]
                    }
                }
            ],
            "kind": "List",
            "metadata": {
                "resourceVersion": ""
            }
        }
        "#);
        insta::assert_snapshot!(listed(ReportFormat::Yaml, &[item]), @r#"
        apiVersion: v1
        items:
        - kind: Pod
          spec:
            a:
            - 1
        kind: List
        metadata:
          resourceVersion: ""
        "#);
    }

    #[test]
    fn control_characters_never_reach_the_terminal_raw() {
        assert!(!to_yaml(&script()).unwrap().contains('\u{1b}'));
        assert!(!to_json(&script()).unwrap().contains('\u{1b}'));
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ -~\\n\\té]{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-zA-Z./~-]{1,8}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn yaml_that_we_print_reads_back_as_the_same_object(value in any_value()) {
            let object = json!({"spec": value});
            let text = to_yaml(&object).unwrap();
            let back: Value = serde_saphyr::from_str(&text).unwrap();
            prop_assert_eq!(&back, &object, "{}", text);
            let list = listed(ReportFormat::Yaml, std::slice::from_ref(&object));
            let back: Value = serde_saphyr::from_str(&list).unwrap();
            prop_assert_eq!(&back["items"][0], &object, "{}", list);
        }
    }
}
