//! Shows what a directory holds. Never changes, creates or locks anything.

use std::path::Path;

use anyhow::Context;
use granary_block::disk::directory::Directory;
use granary_block::size::show;
use granary_block::store::{Inspection, LayerReport, Metadata, inspect};

use super::arguments::Output;

pub fn run(dir: &Path, output: Output) -> anyhow::Result<()> {
    let report = look(dir)?;
    match output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&report)?),
        Output::Text => print!("{}", text(&report)),
    }
    if !report.problems.is_empty() {
        anyhow::bail!(
            "{} problems found; see 'granary replica repair {}'",
            report.problems.len(),
            dir.display()
        );
    }
    Ok(())
}

pub fn look(dir: &Path) -> anyhow::Result<Inspection> {
    let inspected = Directory::open(dir).and_then(|disk| inspect(&disk));
    inspected.with_context(|| format!("cannot look into {}", dir.display()))
}

fn text(report: &Inspection) -> String {
    let mut lines = vec![format!("directory    {}", report.directory)];
    if let Some(pid) = report.in_use_by {
        lines.push(format!("in use by    process {pid}"));
    }
    if let Some(metadata) = &report.metadata {
        lines.extend(volume(metadata));
        let marked: u64 = report.intents.iter().map(|run| run.1).sum();
        lines.push(format!("intents      {marked} regions may differ from other replicas"));
    }
    lines.push(format!("free         {}", show(report.free)));
    if !report.layers.is_empty() {
        lines.push(String::new());
        lines.push(format!("{:<36}  {:>10}  {:>10}  {:>5}  SNAPSHOT", "LAYER", "DATA", "ON DISK", "LINKS"));
        lines.extend(report.layers.iter().map(layer));
    }
    if !report.problems.is_empty() {
        lines.push(String::new());
        lines.extend(report.problems.iter().map(|problem| format!("problem: {problem}")));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn volume(metadata: &Metadata) -> Vec<String> {
    let state = match (metadata.rebuilding, metadata.clean) {
        (true, _) => "unfinished rebuild: not usable until it is rebuilt",
        (false, true) => "closed in order",
        (false, false) => "open, or not closed in order",
    };
    let members =
        metadata.membership.members.iter().map(|member| member.address.as_str()).collect::<Vec<_>>();
    vec![
        format!("replica      {}", metadata.replica),
        format!("volume       {}", metadata.volume.as_deref().unwrap_or("(none yet)")),
        format!("size         {} ({} bytes)", show(metadata.size), metadata.size),
        format!("state        {state}"),
        format!("generation   {}, in sync: {}", metadata.membership.generation, members.join(", ")),
    ]
}

fn layer(layer: &LayerReport) -> String {
    let name = match &layer.snapshot {
        Some(name) => name.as_str(),
        None if layer.is_head => "(head)",
        None => "(inherited)",
    };
    format!(
        "{:<36}  {:>10}  {:>10}  {:>5}  {name}",
        layer.id,
        show(layer.data),
        show(layer.allocated),
        layer.links
    )
}
