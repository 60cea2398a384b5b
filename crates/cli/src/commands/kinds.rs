//! `granary kinds`: what this API serves, and under which names.

use clap::{Args, ValueEnum};

use crate::{error::Result, exit::Exit, kinds::Kind, output::Output, session::Session, table};

#[derive(Debug, Args)]
pub struct KindsArgs {
    /// Only of this group ("" for the core group)
    #[arg(long, value_name = "GROUP")]
    pub api_group: Option<String>,

    /// Only kinds with namespaces, or with =false only those without
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub namespaced: Option<bool>,

    /// name: only the names; wide: also the verbs and categories
    #[arg(short, long, value_name = "FORMAT")]
    pub output: Option<KindsFormat>,

    /// No headings
    #[arg(long)]
    pub no_headers: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KindsFormat {
    Name,
    Wide,
}

pub async fn run(session: &Session, args: &KindsArgs, output: &mut Output) -> Result<Exit> {
    let kinds = session.kinds().await?.preferred();
    let mut kinds: Vec<&Kind> = kinds
        .filter(|kind| args.api_group.as_ref().is_none_or(|group| kind.group == *group))
        .filter(|kind| args.namespaced.is_none_or(|wanted| kind.namespaced == wanted))
        .filter(|kind| kind.can("list") || kind.can("get") || kind.can("create"))
        .collect();
    kinds.sort_by(|a, b| (&a.group, &a.plural).cmp(&(&b.group, &b.plural)));
    if args.output == Some(KindsFormat::Name) {
        for kind in kinds {
            output.line(kind.full_plural())?;
        }
        return Ok(Exit::Ok);
    }
    let wide = args.output == Some(KindsFormat::Wide);
    let mut headings = vec!["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"];
    if wide {
        headings.extend(["VERBS", "CATEGORIES"]);
    }
    let rows: Vec<Vec<String>> = kinds.into_iter().map(|kind| row(kind, wide)).collect();
    let text = table::simple(&headings, &rows, output.paint());
    let skip = if args.no_headers { text.find('\n').map_or(0, |at| at + 1) } else { 0 };
    output.text(&text[skip..])?;
    Ok(Exit::Ok)
}

fn row(kind: &Kind, wide: bool) -> Vec<String> {
    let mut row = vec![
        kind.plural.clone(),
        kind.short_names.join(","),
        kind.api_version(),
        kind.namespaced.to_string(),
        kind.kind.clone(),
    ];
    if wide {
        row.push(kind.verbs.join(","));
        row.push(kind.categories.join(","));
    }
    row
}
