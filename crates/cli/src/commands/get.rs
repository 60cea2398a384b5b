//! `granary get`: objects as the server's tables, or whole as JSON, YAML or names.
//! It reads only. Long lists are fetched and, where the format allows, written page by page.

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use super::watch;
use crate::{
    error::{CliError, Result},
    exit::Exit,
    fieldpath::FieldPath,
    follow::Change,
    format::{Format, ListWriter, ReportFormat, spoken_name, without_managed_fields, write_report},
    kinds::Kind,
    output::Output,
    pages::Pages,
    request::{Address, TABLE},
    selection::ObjectRef,
    session::{DEFAULT_PAGE, Filter, Session},
    sort::sort_by,
    table::{Look, ServerTable, TablePrinter},
    targets::{self, Target},
};

/// Names need nothing of an object but its metadata.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

#[derive(Debug, Args)]
pub struct GetArgs {
    /// KIND, KIND NAME…, KIND/NAME…, or several kinds: KIND,KIND
    #[arg(value_name = "KIND", required = true)]
    pub what: Vec<String>,

    /// In all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,

    /// Only objects with these labels, such as app=db,tier!=test
    #[arg(short = 'l', long = "selector", value_name = "LABELS")]
    pub labels: Option<String>,

    /// Only objects with these field values, such as status.phase=Bound
    #[arg(long = "field-selector", value_name = "FIELDS")]
    pub fields: Option<String>,

    /// How to show them; without it a table
    #[arg(short, long, value_name = "FORMAT")]
    pub output: Option<Format>,

    /// Show changes as they happen, until interrupted
    #[arg(short, long)]
    pub watch: bool,

    /// With --watch: show what happened in a first column
    #[arg(long, requires = "watch")]
    pub output_watch_events: bool,

    /// Order by a field, such as .metadata.creationTimestamp
    #[arg(long, value_name = "PATH", conflicts_with = "watch")]
    pub sort_by: Option<FieldPath>,

    /// Tables without headings
    #[arg(long)]
    pub no_headers: bool,

    /// A last column with all labels
    #[arg(long)]
    pub show_labels: bool,

    /// With json and yaml: also show which manager owns which field
    #[arg(long)]
    pub show_managed_fields: bool,

    /// Fetch lists in pieces of this many objects (0: in one piece)
    #[arg(long, value_name = "N", default_value_t = DEFAULT_PAGE)]
    pub chunk_size: u32,

    /// An object that does not exist is no error
    #[arg(long)]
    pub ignore_not_found: bool,
}

impl GetArgs {
    pub(super) fn filter(&self) -> Filter {
        Filter { labels: self.labels.clone(), fields: self.fields.clone() }
    }

    pub(super) fn look(&self, kind: &Kind) -> Look {
        Look {
            wide: self.output == Some(Format::Wide),
            namespaces: self.all_namespaces && kind.namespaced,
            labels: self.show_labels,
            headers: !self.no_headers,
            events: self.output_watch_events,
        }
    }

    fn check(&self, targets: &[Target]) -> Result<()> {
        let named = targets.iter().any(|target| !target.names.is_empty());
        let usage = |text: &str| Err(CliError::Usage(text.into()));
        if named && self.all_namespaces {
            return usage("an object with a name is in one namespace: use -n, not -A");
        }
        if named && (self.labels.is_some() || self.fields.is_some()) {
            return usage("give names or a selector, not both");
        }
        if self.watch && (targets.len() > 1 || targets.iter().any(|target| target.names.len() > 1)) {
            return usage("--watch follows one kind or one object");
        }
        for target in targets {
            let verb = if target.names.is_empty() { "list" } else { "get" };
            let missing = if self.watch && !target.kind.can("watch") { Some("watch") } else { None };
            if let Some(missing) = missing.or_else(|| (!target.kind.can(verb)).then_some(verb)) {
                let verb = if missing == "watch" { "watched" } else { "read" };
                return Err(CliError::UnsupportedVerb { kind: target.kind.spoken(), verb, missing });
            }
        }
        Ok(())
    }
}

pub async fn run(session: &Session, args: &GetArgs, output: &mut Output) -> Result<Exit> {
    let targets = targets::parse(&args.what, session.kinds().await?)?;
    args.check(&targets)?;
    if args.watch {
        return watch::run(session, args, &targets[0], output).await;
    }
    let mut get = Get { session, args, output, exit: Exit::Ok };
    match args.output {
        None | Some(Format::Wide) => get.tables(&targets).await?,
        Some(Format::Name) => get.names(&targets).await?,
        Some(Format::Json) => get.objects(&targets, ReportFormat::Json).await?,
        Some(Format::Yaml) => get.objects(&targets, ReportFormat::Yaml).await?,
    }
    Ok(get.exit)
}

struct Get<'a> {
    session: &'a Session,
    args: &'a GetArgs,
    output: &'a mut Output,
    exit: Exit,
}

impl<'a> Get<'a> {
    fn pages(&self, kind: &Kind, accept: &'static str) -> Pages<'a> {
        let scope = self.session.scope(kind, self.args.all_namespaces);
        let address = self.args.filter().apply(Address::collection(kind, scope));
        // Sorting looks at any field, so the rows must bring their objects along.
        let include = (accept == TABLE && self.args.sort_by.is_some()).then_some("Object");
        self.session.pages(address.with_some("includeObject", include), accept, self.args.chunk_size)
    }

    /// One object, or `None` if it does not exist; the others are still shown then.
    async fn one(&mut self, kind: &Kind, name: &str, accept: &str) -> Result<Option<Value>> {
        let namespace = self.session.scope(kind, false).map(String::from);
        let object = ObjectRef { kind: kind.clone(), namespace, name: name.into() };
        let include = (accept == TABLE && self.args.sort_by.is_some()).then_some("Object");
        let address = object.address().with_some("includeObject", include);
        match self.session.send(address.get_as(accept)?).await {
            Ok(reply) => Ok(Some(reply.body)),
            Err(error) if error.is_not_found() => {
                if !self.args.ignore_not_found {
                    let error = object.not_found(self.session);
                    self.output.error(&error)?;
                    self.exit = error.exit();
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn tables(&mut self, targets: &[Target]) -> Result<()> {
        let mut printed = 0;
        for target in targets {
            let prefix = (targets.len() > 1).then(|| target.kind.spoken());
            let mut printer = TablePrinter::new(self.args.look(&target.kind), prefix);
            let mut table = ServerTable::default();
            for name in &target.names {
                if let Some(answer) = self.one(&target.kind, name, TABLE).await? {
                    table.extend(ServerTable::read(answer, Timestamp::now())?);
                }
            }
            if target.names.is_empty() {
                let mut pages = self.pages(&target.kind, TABLE);
                while let Some(page) = pages.next().await? {
                    let part = ServerTable::read(page, Timestamp::now())?;
                    if self.args.sort_by.is_some() {
                        table.extend(part);
                    } else {
                        printer.add(part, Change::Added);
                    }
                }
                self.warn_if_inconsistent(&pages)?;
            }
            if let Some(path) = &self.args.sort_by {
                sort_by(&mut table.rows, path, |row| &row.object);
            }
            printer.add(table, Change::Added);
            if !printer.is_empty() {
                if printed > 0 {
                    self.output.line("")?;
                }
                printed += 1;
                let text = printer.take(self.output.paint());
                self.output.text(&text)?;
            }
        }
        if printed == 0 && self.exit == Exit::Ok && targets.iter().all(|target| target.names.is_empty()) {
            self.say_nothing_found(targets)?;
        }
        Ok(())
    }

    async fn names(&mut self, targets: &[Target]) -> Result<()> {
        for target in targets {
            for name in &target.names {
                if self.one(&target.kind, name, "application/json").await?.is_some() {
                    self.output.line(spoken_name(&target.kind, name))?;
                }
            }
            if target.names.is_empty() {
                if self.args.sort_by.is_some() {
                    for object in self.sorted(&target.kind).await? {
                        self.write_name(&target.kind, &object)?;
                    }
                    continue;
                }
                let mut pages = self.pages(&target.kind, METADATA);
                while let Some(page) = pages.next().await? {
                    for object in page["items"].as_array().into_iter().flatten() {
                        self.write_name(&target.kind, object)?;
                    }
                }
                self.warn_if_inconsistent(&pages)?;
            }
        }
        Ok(())
    }

    fn write_name(&mut self, kind: &Kind, object: &Value) -> Result<()> {
        Ok(self.output.line(spoken_name(kind, object["metadata"]["name"].as_str().unwrap_or_default()))?)
    }

    async fn objects(&mut self, targets: &[Target], format: ReportFormat) -> Result<()> {
        if let [Target { kind, names }] = targets
            && let [name] = names.as_slice()
        {
            if let Some(mut object) = self.one(kind, name, "application/json").await? {
                self.finish(kind, &mut object);
                write_report(self.output, format, &object)?;
            }
            return Ok(());
        }
        let mut list: Option<ListWriter> = None;
        for Target { kind, names } in targets {
            for name in names {
                if let Some(object) = self.one(kind, name, "application/json").await? {
                    self.write_item(&mut list, format, kind, object)?;
                }
            }
            if !names.is_empty() {
                continue;
            }
            if self.args.sort_by.is_some() {
                for object in self.sorted(kind).await? {
                    self.write_item(&mut list, format, kind, object)?;
                }
                continue;
            }
            let mut pages = self.pages(kind, "application/json");
            while let Some(mut page) = pages.next().await? {
                if let Value::Array(items) = page["items"].take() {
                    for object in items {
                        self.write_item(&mut list, format, kind, object)?;
                    }
                }
            }
            self.warn_if_inconsistent(&pages)?;
        }
        // Only now is it sure that an empty list is the answer and not an error on the way to it.
        let list = match list {
            Some(list) => list,
            None => ListWriter::begin(self.output, format)?,
        };
        list.end(self.output)
    }

    async fn sorted(&mut self, kind: &Kind) -> Result<Vec<Value>> {
        let mut pages = self.pages(kind, "application/json");
        let mut objects = Vec::new();
        while let Some(mut page) = pages.next().await? {
            if let Value::Array(items) = page["items"].take() {
                objects.extend(items);
            }
        }
        if let Some(path) = &self.args.sort_by {
            sort_by(&mut objects, path, |object| object);
        }
        Ok(objects)
    }

    fn write_item(
        &mut self,
        list: &mut Option<ListWriter>,
        format: ReportFormat,
        kind: &Kind,
        mut object: Value,
    ) -> Result<()> {
        self.finish(kind, &mut object);
        let writer = match list {
            Some(writer) => writer,
            None => list.insert(ListWriter::begin(self.output, format)?),
        };
        writer.item(self.output, &object)
    }

    fn finish(&self, kind: &Kind, object: &mut Value) {
        complete(kind, object);
        if !self.args.show_managed_fields {
            without_managed_fields(object);
        }
    }

    fn warn_if_inconsistent(&mut self, pages: &Pages<'_>) -> Result<()> {
        if pages.inconsistent {
            self.output.warning(
                "the list took so long that its parts are of different times; --chunk-size=0 avoids that",
            )?;
        }
        Ok(())
    }

    fn say_nothing_found(&mut self, targets: &[Target]) -> Result<()> {
        let namespaced = targets.iter().any(|target| target.kind.namespaced) && !self.args.all_namespaces;
        if namespaced {
            self.output
                .remark(format_args!("No resources found in {} namespace.", self.session.namespace))?;
        } else {
            self.output.remark("No resources found.")?;
        }
        Ok(())
    }
}

/// Items of a list do not repeat what they are; shown alone they must.
pub(super) fn complete(kind: &Kind, object: &mut Value) {
    if let Some(map) = object.as_object_mut() {
        map.entry("apiVersion").or_insert_with(|| kind.api_version().into());
        map.entry("kind").or_insert_with(|| kind.kind.clone().into());
    }
}
