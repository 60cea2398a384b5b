//! Which words mean good, fair or bad news, and how a terminal shows that.
//! It decides colours only; no text is changed here, so plain output loses nothing.

use std::borrow::Cow;

/// The mood of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Good,
    Fair,
    Bad,
    /// Present but unimportant, such as a hint.
    Quiet,
    /// A heading.
    Strong,
}

/// Whether a stream takes ANSI colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    Plain,
    Ansi,
}

impl Paint {
    pub fn apply(self, tone: Tone, text: &str) -> Cow<'_, str> {
        if self == Self::Plain || text.is_empty() {
            return Cow::Borrowed(text);
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Fair => "33",
            Tone::Bad => "31",
            Tone::Quiet => "2",
            Tone::Strong => "1",
        };
        Cow::Owned(format!("\u{1b}[{code}m{text}\u{1b}[0m"))
    }
}

/// Columns whose cells say how an object is doing. Other columns may hold the same words by chance.
const STATE_COLUMNS: &[&str] =
    &["STATUS", "STATE", "PHASE", "READY", "ROBUSTNESS", "HEALTH", "HEALTHY", "READYTOUSE", "TYPE"];

const GOOD: &[&str] = &[
    "active",
    "attached",
    "available",
    "bound",
    "complete",
    "completed",
    "enabled",
    "established",
    "healthy",
    "imported",
    "ready",
    "running",
    "succeeded",
    "true",
];

const BAD: &[&str] = &[
    "containercannotrun",
    "crashloopbackoff",
    "createcontainerconfigerror",
    "errimagepull",
    "error",
    "evicted",
    "failed",
    "faulted",
    "imagepullbackoff",
    "invalidimagename",
    "lost",
    "notready",
    "oomkilled",
    "runcontainererror",
];

const FAIR: &[&str] = &[
    "attaching",
    "containercreating",
    "creating",
    "degraded",
    "deleting",
    "detaching",
    "disabling",
    "enabling",
    "false",
    "importing",
    "importscheduled",
    "importinprogress",
    "inprogress",
    "pending",
    "podinitializing",
    "progressing",
    "reconciling",
    "released",
    "starting",
    "stopping",
    "terminating",
    "unknown",
    "waitforfirstconsumer",
    "warning",
];

/// The mood of a cell in a column with this heading, if the column is about state.
pub fn tone_of_cell(heading: &str, cell: &str) -> Option<Tone> {
    if !STATE_COLUMNS.contains(&heading) {
        return None;
    }
    if let Some((done, wanted)) = cell.split_once('/')
        && let (Ok(done), Ok(wanted)) = (done.parse::<u32>(), wanted.parse::<u32>())
    {
        return Some(if done >= wanted { Tone::Good } else { Tone::Fair });
    }
    // `Ready,SchedulingDisabled`: something holds back an otherwise good state.
    match cell.split_once(',') {
        Some((first, _)) => {
            tone_of_word(first).map(|tone| if tone == Tone::Good { Tone::Fair } else { tone })
        }
        None => tone_of_word(cell),
    }
}

/// The mood of a state word, wherever it stands.
pub fn tone_of_word(word: &str) -> Option<Tone> {
    let word = word.to_ascii_lowercase();
    let word = word.strip_prefix("init:").unwrap_or(&word);
    if GOOD.contains(&word) {
        Some(Tone::Good)
    } else if BAD.contains(&word) {
        Some(Tone::Bad)
    } else if FAIR.contains(&word) {
        Some(Tone::Fair)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_coloured_by_what_they_mean() {
        assert_eq!(tone_of_cell("STATUS", "Bound"), Some(Tone::Good));
        assert_eq!(tone_of_cell("ROBUSTNESS", "degraded"), Some(Tone::Fair));
        assert_eq!(tone_of_cell("ROBUSTNESS", "faulted"), Some(Tone::Bad));
        assert_eq!(tone_of_cell("STATUS", "Ready,SchedulingDisabled"), Some(Tone::Fair));
        assert_eq!(tone_of_cell("STATUS", "NotReady,SchedulingDisabled"), Some(Tone::Bad));
        assert_eq!(tone_of_cell("STATUS", "Init:CrashLoopBackOff"), Some(Tone::Bad));
        assert_eq!(tone_of_cell("READY", "1/2"), Some(Tone::Fair));
        assert_eq!(tone_of_cell("READY", "2/2"), Some(Tone::Good));
    }

    #[test]
    fn other_columns_and_unknown_words_stay_plain() {
        assert_eq!(tone_of_cell("NAME", "failed"), None);
        assert_eq!(tone_of_cell("STATUS", "Cordoned"), None);
        assert_eq!(tone_of_cell("TYPE", "Normal"), None);
        assert_eq!(Paint::Plain.apply(Tone::Bad, "x"), "x");
        assert_eq!(Paint::Ansi.apply(Tone::Bad, "x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
