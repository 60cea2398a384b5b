//! The tables that the server computes for a kind, as rows of text. What a column is called and
//! what it says is the server's business; this file only reads and prints it.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    colour::{Paint, Tone, tone_of_cell},
    duration::age,
    error::{CliError, Result},
    fieldpath::plain,
    follow::Change,
    text::{Columns, cell},
};

/// A column of a server's table.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// 0 for columns of interest, more for `-o wide`
    #[serde(default)]
    pub priority: i32,
}

/// One object's row with the object's identity.
#[derive(Debug, Clone)]
pub struct Row {
    pub cells: Vec<String>,
    /// At least the metadata; the whole object if that was asked for.
    pub object: Value,
}

/// A table as received.
#[derive(Debug, Clone, Default)]
pub struct ServerTable {
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
}

impl ServerTable {
    /// Reads a `Table`, or makes one of plain objects from a server that knows no tables.
    pub fn read(answer: Value, now: Timestamp) -> Result<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire {
            #[serde(default)]
            column_definitions: Option<Vec<Column>>,
            #[serde(default)]
            rows: Option<Vec<WireRow>>,
        }
        #[derive(Deserialize)]
        struct WireRow {
            #[serde(default)]
            cells: Vec<Value>,
            #[serde(default)]
            object: Value,
        }

        if answer["kind"] != "Table" {
            return Ok(Self::of_objects(answer, now));
        }
        let wire: Wire =
            serde_json::from_value(answer).map_err(|error| CliError::Answer { reason: error.to_string() })?;
        let rows = wire.rows.unwrap_or_default().into_iter();
        let rows =
            rows.map(|row| Row { cells: row.cells.iter().map(cell_text).collect(), object: row.object });
        Ok(Self { columns: wire.column_definitions.unwrap_or_default(), rows: rows.collect() })
    }

    /// Puts a further part of the same list behind this one.
    pub fn extend(&mut self, more: Self) {
        if self.columns.is_empty() {
            self.columns = more.columns;
        }
        self.rows.extend(more.rows);
    }

    fn of_objects(answer: Value, now: Timestamp) -> Self {
        let objects = match answer {
            Value::Object(mut map) if map.contains_key("items") => match map.remove("items") {
                Some(Value::Array(items)) => items,
                _ => vec![],
            },
            object => vec![object],
        };
        let row = |object: Value| {
            let metadata = &object["metadata"];
            let created = metadata["creationTimestamp"].as_str().and_then(|text| text.parse().ok());
            let cells = vec![
                cell(metadata["name"].as_str().unwrap_or_default()),
                created.map_or_else(|| "<unknown>".into(), |created| age(created, now)),
            ];
            Row { cells, object }
        };
        let columns = ["Name", "Age"].map(|name| Column { name: name.into(), priority: 0 });
        Self { columns: columns.into(), rows: objects.into_iter().map(row).collect() }
    }
}

fn cell_text(value: &Value) -> String {
    match value {
        Value::Null => "<none>".into(),
        Value::Array(list) => list.iter().map(cell_text).collect::<Vec<_>>().join(","),
        other => cell(&plain(other)),
    }
}

/// What to show of a table besides its columns.
#[derive(Debug, Clone, Copy, Default)]
pub struct Look {
    pub wide: bool,
    pub namespaces: bool,
    pub labels: bool,
    pub headers: bool,
    /// A first column with what happened to the object
    pub events: bool,
}

/// Prints rows under headings, all at once or as they come.
pub struct TablePrinter {
    look: Look,
    /// Set when several kinds are shown, so that each name says its kind.
    name_prefix: Option<String>,
    shown: Vec<usize>,
    headings: Vec<String>,
    columns: Columns,
    lines: Vec<Vec<String>>,
    headings_printed: bool,
}

impl TablePrinter {
    pub fn new(look: Look, name_prefix: Option<String>) -> Self {
        Self {
            look,
            name_prefix,
            shown: vec![],
            headings: vec![],
            columns: Columns::default(),
            lines: vec![],
            headings_printed: false,
        }
    }

    /// Takes the headings from the first table that has some; later pages repeat or omit them.
    fn learn(&mut self, columns: &[Column]) {
        if !self.headings.is_empty() || columns.is_empty() {
            return;
        }
        let shown = columns.iter().enumerate().filter(|(_, column)| self.look.wide || column.priority == 0);
        self.shown = shown.map(|(at, _)| at).collect();
        if self.look.events {
            self.headings.push("EVENT".into());
        }
        if self.look.namespaces {
            self.headings.push("NAMESPACE".into());
        }
        self.headings.extend(self.shown.iter().map(|at| cell(&columns[*at].name).to_uppercase()));
        if self.look.labels {
            self.headings.push("LABELS".into());
        }
        if self.look.events {
            // The longest word, so that later rows line up with the first.
            self.columns.fit([Change::Modified.word()]);
        }
        if self.look.headers {
            self.columns.fit(self.headings.iter().map(String::as_str));
        }
    }

    /// Keeps the rows until they are printed; of each object only the text stays in memory.
    pub fn add(&mut self, table: ServerTable, change: Change) {
        self.learn(&table.columns);
        for row in table.rows {
            let metadata = &row.object["metadata"];
            let mut line = Vec::with_capacity(self.headings.len());
            if self.look.events {
                line.push(change.word().into());
            }
            if self.look.namespaces {
                line.push(cell(metadata["namespace"].as_str().unwrap_or_default()));
            }
            for (nth, at) in self.shown.iter().enumerate() {
                let text = row.cells.get(*at).cloned().unwrap_or_default();
                line.push(match &self.name_prefix {
                    Some(prefix) if nth == 0 => format!("{prefix}/{text}"),
                    _ => text,
                });
            }
            if self.look.labels {
                line.push(labels_text(&metadata["labels"]));
            }
            self.columns.fit(line.iter().map(String::as_str));
            self.lines.push(line);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The text of everything added since the last call.
    pub fn take(&mut self, paint: Paint) -> String {
        let mut text = String::new();
        if self.look.headers && !self.headings_printed && !self.lines.is_empty() {
            self.headings_printed = true;
            let strong = |_: usize, heading: &str| paint.apply(Tone::Strong, heading).into_owned();
            text.push_str(&self.columns.line(&self.headings, strong));
            text.push('\n');
        }
        for line in self.lines.drain(..) {
            let toned = |at: usize, cell: &str| match tone_of_cell(&self.headings[at], cell) {
                Some(tone) => paint.apply(tone, cell).into_owned(),
                None => cell.to_owned(),
            };
            text.push_str(&self.columns.line(&line, toned));
            text.push('\n');
        }
        text
    }
}

fn labels_text(labels: &Value) -> String {
    match labels.as_object() {
        Some(map) if !map.is_empty() => {
            let pairs = map.iter().map(|(key, value)| format!("{key}={}", plain(value)));
            cell(&pairs.collect::<Vec<_>>().join(","))
        }
        _ => "<none>".into(),
    }
}

/// A table of our own making, for lists that no server computes.
pub fn simple(headings: &[&str], rows: &[Vec<String>], paint: Paint) -> String {
    let columns = headings.iter().map(|name| Column { name: (*name).into(), priority: 0 }).collect();
    let rows = rows.iter().map(|row| Row { cells: row.clone(), object: Value::Null }).collect();
    let mut printer = TablePrinter::new(Look { headers: true, ..Look::default() }, None);
    printer.add(ServerTable { columns, rows }, Change::Added);
    printer.take(paint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn now() -> Timestamp {
        "2026-11-15T12:00:00Z".parse().unwrap()
    }

    fn claims() -> ServerTable {
        let answer = json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1",
            "columnDefinitions": [
                {"name": "Name", "type": "string", "priority": 0},
                {"name": "Status", "type": "string", "priority": 0},
                {"name": "Capacity", "type": "string", "priority": 0},
                {"name": "VolumeMode", "type": "string", "priority": 1},
            ],
            "rows": [
                {"cells": ["data", "Bound", "10Gi", "Block"],
                 "object": {"metadata": {"name": "data", "namespace": "lab", "labels": {"app": "db", "tier": "1"}}}},
                {"cells": ["scratch-space", "Pending", null, "Filesystem"],
                 "object": {"metadata": {"name": "scratch-space", "namespace": "default"}}},
                {"cells": ["gone\u{1b}[2J", "Lost", 5, "Block"], "object": {"metadata": {}}},
            ],
        });
        ServerTable::read(answer, now()).unwrap()
    }

    fn printed(look: Look, prefix: Option<&str>, paint: Paint) -> String {
        let mut printer = TablePrinter::new(look, prefix.map(String::from));
        printer.add(claims(), Change::Added);
        printer.take(paint)
    }

    #[test]
    fn a_table_is_compact_and_lined_up() {
        insta::assert_snapshot!(printed(Look { headers: true, ..Look::default() }, None, Paint::Plain), @r"
        NAME            STATUS    CAPACITY
        data            Bound     10Gi
        scratch-space   Pending   <none>
        gone�[2J        Lost      5
        ");
    }

    #[test]
    fn more_can_be_asked_for() {
        let look = Look { headers: true, wide: true, namespaces: true, labels: true, events: true };
        insta::assert_snapshot!(printed(look, Some("claim"), Paint::Plain), @r"
        EVENT      NAMESPACE   NAME                  STATUS    CAPACITY   VOLUMEMODE   LABELS
        ADDED      lab         claim/data            Bound     10Gi       Block        app=db,tier=1
        ADDED      default     claim/scratch-space   Pending   <none>     Filesystem   <none>
        ADDED                  claim/gone�[2J        Lost      5          Block        <none>
        ");
    }

    #[test]
    fn scripts_can_do_without_headings() {
        insta::assert_snapshot!(printed(Look::default(), None, Paint::Plain), @r"
        data            Bound     10Gi
        scratch-space   Pending   <none>
        gone�[2J        Lost      5
        ");
    }

    #[test]
    fn colours_do_not_disturb_the_columns() {
        let coloured = printed(Look { headers: true, ..Look::default() }, None, Paint::Ansi);
        assert!(coloured.contains("data            \u{1b}[32mBound\u{1b}[0m     10Gi\n"), "{coloured:?}");
        assert!(coloured.contains("\u{1b}[33mPending\u{1b}[0m   <none>"), "{coloured:?}");
        assert!(coloured.contains("\u{1b}[31mLost\u{1b}[0m      5"), "{coloured:?}");
    }

    #[test]
    fn rows_that_come_later_keep_the_columns_and_have_no_headings() {
        let mut printer = TablePrinter::new(Look { headers: true, ..Look::default() }, None);
        printer.add(claims(), Change::Added);
        printer.take(Paint::Plain);
        let event =
            json!({"kind": "Table", "columnDefinitions": null, "rows": [{"cells": ["x", "Bound", "1Gi"]}]});
        printer.add(ServerTable::read(event, now()).unwrap(), Change::Added);
        assert_eq!(printer.take(Paint::Plain), "x               Bound     1Gi\n");
    }

    #[test]
    fn a_server_without_tables_still_gives_names_and_ages() {
        let list = json!({"kind": "WidgetList", "items": [
            {"metadata": {"name": "a", "creationTimestamp": "2026-11-15T11:59:00Z"}},
            {"metadata": {"name": "b"}},
        ]});
        let mut printer = TablePrinter::new(Look { headers: true, ..Look::default() }, None);
        printer.add(ServerTable::read(list, now()).unwrap(), Change::Added);
        insta::assert_snapshot!(printer.take(Paint::Plain), @r"
        NAME   AGE
        a      60s
        b      <unknown>
        ");
    }
}
