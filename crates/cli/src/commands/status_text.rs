//! The one screen of `granary status`: a line for the API, one for each kind, then what to do.

use std::fmt::Write;

use jiff::Timestamp;

use super::status::{KindReport, Report};
use crate::{
    colour::{Paint, Tone, tone_of_word},
    duration::age,
    text::{Columns, cell},
};

/// A screen has room for so many; the count of the rest is said.
const MOST_CONCERNS: usize = 10;

pub fn render(report: &Report, now: Timestamp, paint: Paint) -> String {
    let mut text = String::new();
    let mut line = |content: &str| writeln!(text, "{content}").expect("a String takes everything");

    let ready =
        if report.api.ready { paint.apply(Tone::Good, "ready") } else { paint.apply(Tone::Bad, "not ready") };
    let version = report.api.version.as_deref().unwrap_or("unknown version");
    line(&format!("API {} is {ready} ({})", report.api.server, cell(version)));

    let rows: Vec<[String; 3]> = report.kinds.iter().map(|kind| kind_row(kind, paint)).collect();
    let mut columns = Columns::default();
    for [title, total, _] in &rows {
        columns.fit([title.as_str(), total.as_str()]);
    }
    for row in &rows {
        line(&format!("  {}", columns.line(row, |_, cell| cell.to_owned())));
    }

    if report.attention.is_empty() {
        line(&paint.apply(Tone::Good, "All is well."));
    } else {
        line("");
        line(&paint.apply(Tone::Strong, "Needs attention:"));
        for concern in report.attention.iter().take(MOST_CONCERNS) {
            let place = concern.namespace.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
            let reason = cell(&concern.reason);
            line(&format!("  {}{place} {reason}", paint.apply(Tone::Bad, &cell(&concern.object))));
            line(&format!("    {} {}", paint.apply(Tone::Quiet, "next:"), cell(&concern.next)));
        }
        let hidden = report.attention.len().saturating_sub(MOST_CONCERNS);
        if hidden > 0 {
            line(&format!("  and {hidden} more; `granary status -o json` lists all"));
        }
    }

    if !report.recent_warnings.is_empty() {
        line("");
        line(&paint.apply(Tone::Strong, "Warnings of the last hour:"));
        for warning in &report.recent_warnings {
            let seen = warning.last_seen.map(|at| format!("{} ago", age(at, now))).unwrap_or_default();
            let times = if warning.count > 1 { format!(", {} times", warning.count) } else { String::new() };
            let reason = paint.apply(Tone::Fair, &warning.reason).into_owned();
            line(&format!(
                "  {}: {reason} ({seen}{times}): {}",
                cell(&warning.object),
                cell(&warning.message)
            ));
            line(&format!("    {} {}", paint.apply(Tone::Quiet, "next:"), cell(&warning.next)));
        }
    }
    text
}

/// Title, number, and the states if they say more than the number.
fn kind_row(kind: &KindReport, paint: Paint) -> [String; 3] {
    if let Some(error) = &kind.error {
        return [kind.title.into(), "?".into(), cell(error)];
    }
    let mut states: Vec<(&String, &usize)> = kind.states.iter().collect();
    states.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let states = states.into_iter().map(|(state, count)| {
        let word = tone_of_word(&state.replace(' ', ""))
            .map_or_else(|| state.clone(), |tone| paint.apply(tone, state).into_owned());
        format!("{count} {word}")
    });
    [kind.title.into(), kind.total.to_string(), states.collect::<Vec<_>>().join(", ")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::status::{ApiReport, Concern, Warning};
    use std::collections::BTreeMap;

    fn kind(title: &'static str, states: &[(&str, usize)]) -> KindReport {
        KindReport {
            resource: title.into(),
            title,
            total: states.iter().map(|(_, count)| count).sum(),
            states: states
                .iter()
                .map(|(state, count)| (state.to_string(), *count))
                .collect::<BTreeMap<_, _>>(),
            error: None,
        }
    }

    fn healthy() -> Report {
        let api = ApiReport {
            server: "https://127.0.0.1:8443".into(),
            reachable: true,
            ready: true,
            version: Some("v1.36.0+granary".into()),
            failed_checks: vec![],
            error: None,
        };
        let kinds = vec![
            kind("nodes", &[("ready", 1)]),
            kind("volume claims", &[("bound", 12), ("pending", 1)]),
            kind("pods", &[]),
        ];
        Report { ok: true, api, kinds, attention: vec![], recent_warnings: vec![] }
    }

    #[test]
    fn when_all_is_well_it_says_so_in_a_few_lines() {
        insta::assert_snapshot!(render(&healthy(), Timestamp::UNIX_EPOCH, Paint::Plain), @r"
        API https://127.0.0.1:8443 is ready (v1.36.0+granary)
          nodes           1    1 ready
          volume claims   13   12 bound, 1 pending
          pods            0
        All is well.
        ");
    }

    #[test]
    fn trouble_comes_with_the_next_step() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let mut report = healthy();
        report.kinds[2].error = Some("pods is forbidden".into());
        report.attention = (0..12)
            .map(|n| Concern {
                object: format!("volume.longhorn.io/v{n}"),
                namespace: Some("longhorn-system".into()),
                reason: "is degraded".into(),
                next: format!("granary describe volume.longhorn.io/v{n} -n longhorn-system"),
            })
            .collect();
        report.recent_warnings = vec![Warning {
            last_seen: Some("2026-11-15T11:58:00Z".parse().unwrap()),
            count: 3,
            object: "persistentvolumeclaim/data".into(),
            namespace: "lab".into(),
            reason: "ProvisioningFailed".into(),
            message: "no space".into(),
            next: "granary describe persistentvolumeclaim/data -n lab".into(),
        }];
        let text = render(&report, now, Paint::Plain);
        insta::assert_snapshot!(text.lines().take(9).collect::<Vec<_>>().join("\n"), @r"
        API https://127.0.0.1:8443 is ready (v1.36.0+granary)
          nodes           1    1 ready
          volume claims   13   12 bound, 1 pending
          pods            ?    pods is forbidden

        Needs attention:
          volume.longhorn.io/v0 in longhorn-system is degraded
            next: granary describe volume.longhorn.io/v0 -n longhorn-system
          volume.longhorn.io/v1 in longhorn-system is degraded
        ");
        insta::assert_snapshot!(text.lines().rev().take(5).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n"), @r"
          and 2 more; `granary status -o json` lists all

        Warnings of the last hour:
          persistentvolumeclaim/data: ProvisioningFailed (2m ago, 3 times): no space
            next: granary describe persistentvolumeclaim/data -n lab
        ");
    }
}
