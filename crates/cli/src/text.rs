//! Making text from elsewhere safe and aligned: a message of some program must never be able to
//! move the cursor or repaint the terminal of the person who reads it.

use std::borrow::Cow;

/// One line without control characters. Further lines are dropped and shown as `...`.
pub fn cell(text: &str) -> String {
    let mut lines = text.trim_end().lines();
    let first = printable(lines.next().unwrap_or_default()).into_owned();
    if lines.next().is_some() { format!("{first}...") } else { first }
}

/// The text with every control character replaced by a visible one; tabs become spaces.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let replaced = text.chars().map(|c| match c {
        '\t' => ' ',
        c if is_unsafe(c) => '\u{fffd}',
        c => c,
    });
    Cow::Owned(replaced.collect())
}

/// Control characters, and the marks that reorder what is written left to right.
fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Lines up columns three spaces apart. A line never ends in spaces.
#[derive(Debug, Default)]
pub struct Columns {
    widths: Vec<usize>,
}

impl Columns {
    const GAP: usize = 3;

    /// Makes room for a row; columns only ever grow.
    pub fn fit<'a>(&mut self, row: impl IntoIterator<Item = &'a str>) {
        for (at, cell) in row.into_iter().enumerate() {
            let width = width(cell);
            match self.widths.get_mut(at) {
                Some(known) => *known = (*known).max(width),
                None => self.widths.push(width),
            }
        }
    }

    /// One line. `paint` may decorate a cell; its decoration takes no room.
    pub fn line(&self, row: &[String], paint: impl Fn(usize, &str) -> String) -> String {
        let last = row.iter().rposition(|cell| !cell.is_empty()).map_or(0, |at| at + 1);
        let mut line = String::new();
        for (at, cell) in row[..last].iter().enumerate() {
            line.push_str(&paint(at, cell));
            if at + 1 < last {
                let room = self.widths.get(at).copied().unwrap_or_default().saturating_sub(width(cell));
                line.extend(std::iter::repeat_n(' ', room + Self::GAP));
            }
        }
        line
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_cannot_take_over_the_terminal() {
        assert_eq!(cell("all\u{1b}[2J gone\nsecond line"), "all\u{fffd}[2J gone...");
        assert_eq!(cell("one line\n"), "one line");
        assert_eq!(cell("a\tb"), "a b");
        assert_eq!(cell("evil\u{202e}txt"), "evil\u{fffd}txt");
        assert_eq!(printable("plain é"), "plain é");
    }

    proptest! {
        #[test]
        fn every_column_starts_at_the_same_place(rows in prop::collection::vec(
            prop::collection::vec("[a-zé]{0,9}", 3), 1..6)
        ) {
            let mut columns = Columns::default();
            for row in &rows {
                columns.fit(row.iter().map(String::as_str));
            }
            let start = columns.widths[0] + Columns::GAP;
            for row in &rows {
                let line = columns.line(row, |_, cell| cell.to_owned());
                prop_assert!(!line.ends_with(' '));
                if !row[1].is_empty() {
                    let second: String = line.chars().skip(start).take(row[1].chars().count()).collect();
                    prop_assert_eq!(&second, &row[1]);
                }
            }
        }
    }
}
