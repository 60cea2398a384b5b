//! `granary events`: what happened, in the order it happened.

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::Value;

use super::get::complete;
use crate::{
    colour::Paint,
    error::{CliError, Result},
    event::{self, Event},
    exit::Exit,
    follow::{Change, Follow, Step},
    format::{ListWriter, ReportFormat, to_json, without_managed_fields, write_report},
    kinds::Kind,
    output::Output,
    request::Address,
    session::{DEFAULT_PAGE, Filter, Session},
    table::{Column, Look, Row, ServerTable, TablePrinter},
    targets,
};

#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Only about this object
    #[arg(long = "for", value_name = "KIND/NAME")]
    pub about: Option<String>,

    /// Only of these types
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    pub types: Vec<EventType>,

    /// In all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,

    /// Show further events as they happen, until interrupted
    #[arg(short, long)]
    pub watch: bool,

    /// How to show them; without it a table
    #[arg(short, long, value_name = "FORMAT")]
    pub output: Option<ReportFormat>,

    /// No headings
    #[arg(long)]
    pub no_headers: bool,
}

/// The two types of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EventType {
    #[value(name = "Normal", alias = "normal")]
    Normal,
    #[value(name = "Warning", alias = "warning")]
    Warning,
}

impl EventType {
    fn word(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

pub async fn run(session: &Session, args: &EventsArgs, output: &mut Output) -> Result<Exit> {
    let kinds = session.kinds().await?;
    let kind = kinds
        .by_plural("", "events")
        .ok_or_else(|| CliError::UnknownKind { asked: "events".into(), near: vec![] })?;
    let (filter, cluster_wide) = filter(session, args).await?;
    let scope = session.scope(kind, args.all_namespaces || cluster_wide);
    let address = filter.apply(Address::collection(kind, scope));

    let (objects, version) = list(session, &address).await?;
    let mut show = Show { args, kind, output, printer: printer(args, scope.is_none()) };
    show.all(objects)?;
    if !args.watch {
        return Ok(Exit::Ok);
    }
    let mut follow = Follow::new(session, address.clone(), "application/json", &version);
    loop {
        match follow.next().await? {
            Step::Changed(Change::Deleted, _) => {}
            Step::Changed(_, object) => show.one(object)?,
            // Events age out by themselves; what was missed is not worth repeating the rest.
            Step::Expired => follow.restart(&list(session, &address).await?.1),
        }
    }
}

/// Which events; true if they are about an object without a namespace, whose events are anywhere.
async fn filter(session: &Session, args: &EventsArgs) -> Result<(Filter, bool)> {
    let mut fields = Vec::new();
    let mut cluster_wide = false;
    if let Some(about) = &args.about {
        let targets = targets::parse(std::slice::from_ref(about), session.kinds().await?)?;
        let target = targets.into_iter().next().filter(|target| target.names.len() == 1);
        let target = target.ok_or_else(|| CliError::Usage("--for takes KIND/NAME".into()))?;
        fields.push(format!("involvedObject.kind={}", target.kind.kind));
        fields.push(format!("involvedObject.name={}", target.names[0]));
        cluster_wide = !target.kind.namespaced;
    }
    if let [only] = args.types.as_slice() {
        fields.push(format!("type={}", only.word()));
    }
    let fields = (!fields.is_empty()).then(|| fields.join(","));
    Ok((Filter { labels: None, fields }, cluster_wide))
}

async fn list(session: &Session, address: &Address) -> Result<(Vec<Value>, String)> {
    let mut pages = session.pages(address.clone(), "application/json", DEFAULT_PAGE);
    let mut objects = Vec::new();
    let mut version = String::new();
    while let Some(mut page) = pages.next().await? {
        version = page["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        if let Value::Array(items) = page["items"].take() {
            objects.extend(items);
        }
    }
    objects.sort_by_cached_key(|object| Event::read(object).last_seen);
    Ok((objects, version))
}

fn printer(args: &EventsArgs, namespaces: bool) -> TablePrinter {
    TablePrinter::new(Look { headers: !args.no_headers, namespaces, ..Look::default() }, None)
}

struct Show<'a> {
    args: &'a EventsArgs,
    kind: &'a Kind,
    output: &'a mut Output,
    printer: TablePrinter,
}

impl Show<'_> {
    fn all(&mut self, mut objects: Vec<Value>) -> Result<()> {
        for object in &mut objects {
            complete(self.kind, object);
            without_managed_fields(object);
        }
        match self.args.output {
            Some(format) if !self.args.watch => {
                let mut list = ListWriter::begin(self.output, format)?;
                for object in &objects {
                    list.item(self.output, object)?;
                }
                return list.end(self.output);
            }
            Some(_) => {
                for object in objects {
                    self.one(object)?;
                }
                return Ok(());
            }
            None => {}
        }
        if objects.is_empty() && !self.args.watch {
            return Ok(self.output.remark("No events found.")?);
        }
        self.rows(&objects)
    }

    fn one(&mut self, mut object: Value) -> Result<()> {
        complete(self.kind, &mut object);
        without_managed_fields(&mut object);
        match self.args.output {
            None => return self.rows(&[object]),
            Some(ReportFormat::Json) => self.output.line(to_json(&object)?)?,
            Some(ReportFormat::Yaml) => {
                self.output.line("---")?;
                write_report(self.output, ReportFormat::Yaml, &object)?;
            }
        }
        Ok(self.output.flush()?)
    }

    fn rows(&mut self, objects: &[Value]) -> Result<()> {
        let text = rows_text(&mut self.printer, objects, Timestamp::now(), self.output.paint());
        self.output.text(&text)?;
        Ok(self.output.flush()?)
    }
}

fn rows_text(printer: &mut TablePrinter, objects: &[Value], now: Timestamp, paint: Paint) -> String {
    let columns = event::HEADINGS.map(|name| Column { name: name.into(), priority: 0 }).to_vec();
    let rows = objects.iter().map(|object| Row {
        cells: Event::read(object).row(now),
        object: serde_json::json!({"metadata": {"namespace": object["metadata"]["namespace"]}}),
    });
    printer.add(ServerTable { columns, rows: rows.collect() }, Change::Added);
    printer.take(paint)
}
