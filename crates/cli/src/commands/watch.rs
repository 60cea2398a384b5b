//! `granary get --watch`: the list, then every change of it until the user has seen enough.
//! Survives restarts of the server; what changed meanwhile is shown, what did not is not repeated.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::Value;

use super::get::{GetArgs, complete};
use crate::{
    error::Result,
    exit::Exit,
    follow::{Change, Follow, Step},
    format::{Format, ReportFormat, spoken_name, to_json, without_managed_fields, write_report},
    kinds::Kind,
    output::Output,
    request::{Address, TABLE},
    selection::ObjectRef,
    session::{Filter, Session},
    table::{ServerTable, TablePrinter},
    targets::Target,
};

pub async fn run(session: &Session, args: &GetArgs, target: &Target, output: &mut Output) -> Result<Exit> {
    let filter = match target.names.first() {
        Some(name) => Filter::named(name),
        None => args.filter(),
    };
    if let Some(name) = target.names.first() {
        // A name that does not exist is a mistake, not something to wait for.
        let namespace = session.scope(&target.kind, false).map(String::from);
        let object = ObjectRef { kind: target.kind.clone(), namespace, name: name.clone() };
        if let Err(error) = session.get(&object.address()).await {
            return Err(if error.is_not_found() { object.not_found(session) } else { error });
        }
    }
    let is_table = matches!(args.output, None | Some(Format::Wide));
    let accept = if is_table { TABLE } else { "application/json" };
    let address =
        filter.apply(Address::collection(&target.kind, session.scope(&target.kind, args.all_namespaces)));
    let mut watch = Watch {
        args,
        kind: &target.kind,
        output,
        printer: is_table.then(|| TablePrinter::new(args.look(&target.kind), None)),
        shown: HashMap::new(),
    };

    let version = watch.list(session, &address, accept).await?;
    let mut follow = Follow::new(session, address.clone(), accept, &version);
    loop {
        match follow.next().await? {
            Step::Changed(change, object) => watch.show(change, object)?,
            Step::Expired => {
                let version = watch.list(session, &address, accept).await?;
                follow.restart(&version);
            }
        }
    }
}

struct Watch<'a> {
    args: &'a GetArgs,
    kind: &'a Kind,
    output: &'a mut Output,
    /// `None` when whole objects are shown.
    printer: Option<TablePrinter>,
    /// The version in which each object was shown last, by its uid.
    shown: HashMap<String, String>,
}

impl Watch<'_> {
    /// Shows what is new in the list; returns the version it is of.
    async fn list(&mut self, session: &Session, address: &Address, accept: &'static str) -> Result<String> {
        let mut pages = session.pages(address.clone(), accept, self.args.chunk_size);
        let mut version = String::new();
        while let Some(mut page) = pages.next().await? {
            version = page["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
            if self.printer.is_some() {
                self.show_rows(Change::Added, ServerTable::read(page, Timestamp::now())?);
            } else if let Value::Array(items) = page["items"].take() {
                for object in items {
                    self.show_object(Change::Added, object)?;
                }
            }
        }
        self.print_rows()?;
        Ok(version)
    }

    fn show(&mut self, change: Change, object: Value) -> Result<()> {
        if self.printer.is_some() {
            self.show_rows(change, ServerTable::read(object, Timestamp::now())?);
            self.print_rows()
        } else {
            self.show_object(change, object)?;
            Ok(self.output.flush()?)
        }
    }

    fn show_rows(&mut self, change: Change, mut table: ServerTable) {
        table.rows.retain(|row| self.is_news(change, &row.object));
        if let Some(printer) = &mut self.printer {
            printer.add(table, change);
        }
    }

    fn print_rows(&mut self) -> Result<()> {
        if let Some(printer) = &mut self.printer {
            let text = printer.take(self.output.paint());
            self.output.text(&text)?;
        }
        Ok(self.output.flush()?)
    }

    fn show_object(&mut self, change: Change, mut object: Value) -> Result<()> {
        if !self.is_news(change, &object) {
            return Ok(());
        }
        complete(self.kind, &mut object);
        if !self.args.show_managed_fields {
            without_managed_fields(&mut object);
        }
        match self.args.output {
            Some(Format::Name) => {
                let name = spoken_name(self.kind, object["metadata"]["name"].as_str().unwrap_or_default());
                if self.args.output_watch_events {
                    self.output.line(format_args!("{} {name}", change.word()))?;
                } else {
                    self.output.line(name)?;
                }
            }
            _ => {
                if self.args.output_watch_events {
                    object = serde_json::json!({"type": change.word(), "object": object});
                }
                match self.args.output {
                    Some(Format::Yaml) => {
                        self.output.line("---")?;
                        write_report(self.output, ReportFormat::Yaml, &object)?;
                    }
                    _ => self.output.line(to_json(&object)?)?,
                }
            }
        }
        Ok(())
    }

    /// False for an object that was already shown in this very version.
    fn is_news(&mut self, change: Change, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let (Some(uid), Some(version)) = (metadata["uid"].as_str(), metadata["resourceVersion"].as_str())
        else {
            return true;
        };
        if change == Change::Deleted {
            self.shown.remove(uid);
            return true;
        }
        self.shown.insert(uid.to_owned(), version.to_owned()).is_none_or(|before| before != version)
    }
}
