//! `granary status`: one screen that says whether all is well and, if not, what to look at.
//! Gathers facts into a report; what is a concern is decided in `health`.

use std::collections::BTreeMap;

use clap::Args;
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::status_text;
use crate::{
    error::{CliError, Result},
    event::{Event, sort_by_time},
    exit::Exit,
    format::{ReportFormat, write_report},
    health::{Class, Context, IMPORTANT, Important},
    kinds::Kind,
    output::Output,
    request::Address,
    selection::reference,
    session::{DEFAULT_PAGE, Filter, Session},
};

/// Older warnings tell more about yesterday than about now.
const RECENT: SignedDuration = SignedDuration::from_hours(1);
const MOST_WARNINGS: usize = 5;

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// How to show it; without it one screen for people
    #[arg(short, long, value_name = "FORMAT")]
    pub output: Option<ReportFormat>,
}

/// Everything `status` knows.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Nothing needs attention.
    pub ok: bool,
    pub api: ApiReport,
    pub kinds: Vec<KindReport>,
    pub attention: Vec<Concern>,
    /// News, not verdicts: they do not make `ok` false.
    pub recent_warnings: Vec<Warning>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiReport {
    pub server: String,
    pub reachable: bool,
    pub ready: bool,
    pub version: Option<String>,
    pub failed_checks: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The count of one kind by state.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KindReport {
    pub resource: String,
    pub title: &'static str,
    pub total: usize,
    pub states: BTreeMap<String, usize>,
    /// Why they could not be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// An object that a person should look at.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Concern {
    pub object: String,
    pub namespace: Option<String>,
    pub reason: String,
    /// The command to run next.
    pub next: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    pub last_seen: Option<Timestamp>,
    pub count: i64,
    pub object: String,
    pub namespace: String,
    pub reason: String,
    pub message: String,
    pub next: String,
}

pub async fn run(session: &Session, args: &StatusArgs, output: &mut Output) -> Result<Exit> {
    let report = match gather(session).await {
        Ok(report) => report,
        Err(error) => {
            // A program that reads the report must get one even now.
            if let Some(format) = args.output {
                write_report(output, format, &unreachable(session, &error))?;
            }
            return Err(error);
        }
    };
    match args.output {
        Some(format) => write_report(output, format, &report)?,
        None => {
            let text = status_text::render(&report, Timestamp::now(), output.paint());
            output.text(&text)?;
        }
    }
    Ok(if report.ok { Exit::Ok } else { Exit::Attention })
}

async fn gather(session: &Session) -> Result<Report> {
    let api = api_report(session).await?;
    let kinds = session.kinds().await?;
    let now = Timestamp::now();
    let context = Context { now, classes: storage_classes(session).await };
    let served = IMPORTANT
        .iter()
        .filter_map(|important| Some((important, kinds.by_plural(important.group, important.plural)?)));
    let counted = join_all(served.map(|(important, kind)| count(session, important, kind, &context))).await;

    let mut attention = Vec::new();
    if !api.ready {
        attention.push(Concern {
            object: "the API".into(),
            namespace: None,
            reason: format!("is not ready: {}", api.failed_checks.join(", ")),
            next: "look at the log of `granary up`".into(),
        });
    }
    let mut reports = Vec::new();
    for (report, concerns) in counted {
        reports.push(report);
        attention.extend(concerns);
    }
    let recent_warnings = recent_warnings(session, now).await;
    Ok(Report { ok: attention.is_empty(), api, kinds: reports, attention, recent_warnings })
}

fn unreachable(session: &Session, error: &CliError) -> Report {
    let api = ApiReport {
        server: session.origin.server.clone(),
        reachable: !matches!(error, CliError::Unreachable { .. }),
        ready: false,
        version: None,
        failed_checks: vec![],
        error: Some(error.to_string()),
    };
    Report { ok: false, api, kinds: vec![], attention: vec![], recent_warnings: vec![] }
}

async fn api_report(session: &Session) -> Result<ApiReport> {
    let (code, text) = session.probe("/readyz?verbose").await?;
    // Without the right to look at the probes the version still proves that somebody is there.
    let version = session.get(&Address::path("/version")).await?;
    let failed_checks = if code == 500 || code == 503 { failed_checks(&text) } else { vec![] };
    Ok(ApiReport {
        server: session.origin.server.clone(),
        reachable: true,
        ready: failed_checks.is_empty(),
        version: version["gitVersion"].as_str().map(String::from),
        failed_checks,
        error: None,
    })
}

/// The checks that a verbose probe marks with `[-]`.
fn failed_checks(text: &str) -> Vec<String> {
    let failed: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("[-]"))
        .map(|line| line.trim_end_matches("reason withheld").trim_end_matches([':', ' ']).to_owned())
        .collect();
    if failed.is_empty() { vec![text.lines().next().unwrap_or("no reason given").to_owned()] } else { failed }
}

async fn storage_classes(session: &Session) -> Option<Vec<Class>> {
    let kind = session.kinds().await.ok()?.by_plural("storage.k8s.io", "storageclasses")?;
    // Without the right to read them, claims are judged by their age alone.
    let classes = session.list(Address::collection(kind, None)).await.ok()?;
    Some(classes.iter().map(Class::read).collect())
}

/// Counts page by page; only what needs attention is kept.
async fn count(
    session: &Session,
    important: &Important,
    kind: &Kind,
    context: &Context,
) -> (KindReport, Vec<Concern>) {
    let mut report = KindReport {
        resource: kind.full_plural(),
        title: important.title,
        total: 0,
        states: BTreeMap::new(),
        error: None,
    };
    let mut concerns = Vec::new();
    let mut pages = session.pages(Address::collection(kind, None), "application/json", DEFAULT_PAGE);
    loop {
        let page = match pages.next().await {
            Ok(Some(page)) => page,
            Ok(None) => break,
            Err(error) => {
                report.error = Some(error.to_string());
                break;
            }
        };
        for object in page["items"].as_array().into_iter().flatten() {
            let verdict = (important.judge)(object, context);
            report.total += 1;
            *report.states.entry(verdict.state).or_default() += 1;
            if let (Some(reason), Some(object)) = (verdict.concern, reference(kind, object)) {
                concerns.push(Concern {
                    next: object.describe_command(),
                    object: object.to_string(),
                    namespace: object.namespace,
                    reason,
                });
            }
        }
    }
    (report, concerns)
}

/// The newest first. Warnings are extra: not being allowed to read them is no failure.
async fn recent_warnings(session: &Session, now: Timestamp) -> Vec<Warning> {
    let Ok(kinds) = session.kinds().await else { return vec![] };
    let Some(kind) = kinds.by_plural("", "events") else { return vec![] };
    let filter = Filter { labels: None, fields: Some("type=Warning".into()) };
    let found = session.list(filter.apply(Address::collection(kind, None))).await.unwrap_or_default();
    let events = found.iter().map(Event::read).collect();
    newest(events, now).iter().map(warning).collect()
}

fn newest(mut events: Vec<Event>, now: Timestamp) -> Vec<Event> {
    events.retain(|event| {
        event.is_warning() && event.last_seen.is_some_and(|at| now.duration_since(at) < RECENT)
    });
    sort_by_time(&mut events);
    events.reverse();
    events.truncate(MOST_WARNINGS);
    events
}

fn warning(event: &Event) -> Warning {
    let object = event.object_name();
    let namespace = &event.about.namespace;
    let flag = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
    Warning {
        last_seen: event.last_seen,
        count: event.count,
        next: format!("granary describe {object}{flag}"),
        object,
        namespace: namespace.clone(),
        reason: event.reason.clone(),
        message: event.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_failing_probe_names_its_failing_checks() {
        let text =
            "[+]ping ok\n[-]etcd failed: reason withheld\n[+]log ok\n[-]store failed\nreadyz check failed\n";
        assert_eq!(failed_checks(text), ["etcd failed", "store failed"]);
        assert_eq!(failed_checks("shutting down\n"), ["shutting down"]);
    }

    #[test]
    fn only_the_newest_warnings_of_the_last_hour_are_news() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let event = |minute: usize, kind: &str| {
            Event::read(
                &json!({"type": kind, "lastTimestamp": format!("2026-11-15T11:{minute:02}:00Z"), "reason": minute.to_string()}),
            )
        };
        let mut events: Vec<Event> = (10..18).map(|minute| event(minute, "Warning")).collect();
        events.push(event(59, "Normal"));
        events.push(Event::read(
            &json!({"type": "Warning", "lastTimestamp": "2026-11-15T10:59:00Z", "reason": "old"}),
        ));
        let reasons: Vec<String> = newest(events, now).into_iter().map(|event| event.reason).collect();
        assert_eq!(reasons, ["17", "16", "15", "14", "13"]);
    }
}
