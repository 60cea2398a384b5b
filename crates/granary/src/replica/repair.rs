//! Says what would be done about a directory's problems, and does it when asked to.

use std::path::Path;

use anyhow::Context;
use granary_block::disk::directory::Directory;
use granary_block::store::{Action, plan_repair};

use super::inspect::look;

pub fn run(dir: &Path, apply: bool) -> anyhow::Result<()> {
    let plan = plan_repair(&look(dir)?);
    if plan.is_empty() {
        println!("nothing is wrong with {}", dir.display());
        return Ok(());
    }
    let disk = Directory::open(dir).with_context(|| format!("cannot open {}", dir.display()))?;
    let mut helpless = 0;
    for remedy in &plan {
        println!("problem: {}", remedy.problem);
        let verb = if apply { "done" } else { "would be done" };
        match remedy.action {
            Action::Nothing => {
                helpless += 1;
                println!("  nothing here helps: {}", remedy.explanation);
            }
            _ => {
                if apply {
                    remedy.apply(&disk)?;
                }
                println!("  {verb}: {}", remedy.explanation);
            }
        }
    }
    if helpless > 0 {
        anyhow::bail!("{helpless} of {} problems cannot be repaired here", plan.len());
    }
    if !apply {
        println!("nothing was changed; add --apply to do this");
    }
    Ok(())
}
