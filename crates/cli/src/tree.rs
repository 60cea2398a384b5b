//! An object's fields as an indented tree for people. Field names stay as they are on the wire,
//! so that what one reads is what one can write.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::text::printable;

/// Lists of plain values up to this many characters stay on one line.
const SHORT_LIST: usize = 70;

/// The fields of a map, each on lines of its own, `indent` spaces in.
pub fn render(map: &Map<String, Value>, indent: usize) -> String {
    let mut text = String::new();
    fields(map, indent, &mut text);
    text
}

fn fields(map: &Map<String, Value>, indent: usize, text: &mut String) {
    for (key, value) in map {
        entry(&printable(key), value, indent, text);
    }
}

fn entry(key: &str, value: &Value, indent: usize, text: &mut String) {
    let pad = " ".repeat(indent);
    let mut line = |rest: std::fmt::Arguments<'_>| {
        writeln!(text, "{pad}{key}:{rest}").expect("a String takes everything");
    };
    match value {
        Value::Object(map) if map.is_empty() => line(format_args!(" {{}}")),
        Value::Object(map) => {
            line(format_args!(""));
            fields(map, indent + 2, text);
        }
        Value::Array(list) => match on_one_line(list) {
            Some(short) => line(format_args!(" {short}")),
            None => {
                line(format_args!(""));
                items(list, indent, text);
            }
        },
        Value::String(lines) if lines.trim_end().contains('\n') => {
            line(format_args!(""));
            block(lines, indent + 2, text);
        }
        scalar => line(format_args!(" {}", scalar_text(scalar))),
    }
}

/// Each item starts with a dash where its key stands.
fn items(list: &[Value], indent: usize, text: &mut String) {
    for item in list {
        let mut inner = String::new();
        match item {
            Value::Object(map) if !map.is_empty() => fields(map, indent + 2, &mut inner),
            Value::Array(list) if on_one_line(list).is_none() => items(list, indent + 2, &mut inner),
            Value::Array(list) => inner = on_one_line(list).unwrap_or_default(),
            Value::Object(_) => inner.push_str("{}"),
            Value::String(lines) if lines.trim_end().contains('\n') => block(lines, indent + 2, &mut inner),
            scalar => inner = scalar_text(scalar),
        }
        text.push_str(&" ".repeat(indent));
        text.push_str("- ");
        text.push_str(inner.trim_start());
        if !inner.ends_with('\n') {
            text.push('\n');
        }
    }
}

fn block(lines: &str, indent: usize, text: &mut String) {
    for line in lines.trim_end().lines() {
        text.push_str(&" ".repeat(indent));
        text.push_str(&printable(line));
        text.push('\n');
    }
}

fn on_one_line(list: &[Value]) -> Option<String> {
    if list.is_empty() {
        return Some("[]".into());
    }
    let is_short = |value: &Value| match value {
        Value::String(text) => !text.contains('\n'),
        other => other.is_number() || other.is_boolean(),
    };
    if !list.iter().all(is_short) {
        return None;
    }
    let joined = list.iter().map(scalar_text).collect::<Vec<_>>().join(", ");
    (joined.chars().count() <= SHORT_LIST).then_some(joined)
}

fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "\"\"".into(),
        Value::String(text) => printable(text.trim_end()).into_owned(),
        Value::Null => "<none>".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tree(value: &Value) -> String {
        render(value.as_object().unwrap(), 2)
    }

    #[test]
    fn a_spec_reads_like_an_outline() {
        let spec = json!({
            "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
            "resources": {"requests": {"storage": "10Gi"}},
            "volumeMode": "Block",
            "empty": {}, "nothing": null, "blank": "", "list": [], "on": true,
            "containers": [
                {"name": "a", "args": ["--one", "--two"], "ports": [{"port": 80}, {"port": 443}]},
                {"name": "b", "script": "#!/bin/sh\necho hi\n"},
            ],
            "matrix": [[1, 2], [3]],
            "texts": ["one\ntwo", "three"],
        });
        insta::assert_snapshot!(tree(&spec), @r#"
          accessModes: ReadWriteOnce, ReadOnlyMany
          blank: ""
          containers:
          - args: --one, --two
            name: a
            ports:
            - port: 80
            - port: 443
          - name: b
            script:
              #!/bin/sh
              echo hi
          empty: {}
          list: []
          matrix:
          - 1, 2
          - 3
          nothing: <none>
          on: true
          resources:
            requests:
              storage: 10Gi
          texts:
          - one
            two
          - three
          volumeMode: Block
        "#);
    }

    #[test]
    fn long_lists_get_a_line_for_each_item() {
        let text = tree(
            &json!({"urls": ["https://one.example.com/a/long/path", "https://two.example.com/another/long/path"]}),
        );
        assert_eq!(text.lines().count(), 3, "{text}");
    }

    #[test]
    fn values_cannot_take_over_the_terminal() {
        let text = tree(&json!({"a\u{1b}": "b\u{1b}[2J", "c": ["\u{7}"], "d": "x\n\u{1b}y"}));
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
    }
}
