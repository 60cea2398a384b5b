//! Formats of dates, times and durations.
//!
//! Owns these checks only. Must never read a clock.

use std::sync::LazyLock;

use regex::Regex;

static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})$")
        .expect("a constant expression")
});
static WORDY_DURATION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"([0-9]+)\s*([A-Za-zµ]+)").expect("a constant expression"));

pub fn is_date(text: &str) -> bool {
    let shape = text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(i, b)| if i == 4 || i == 7 { b == b'-' } else { b.is_ascii_digit() });
    // Go's calendar has a year 0 and so has jiff's.
    shape && text.parse::<jiff::civil::Date>().is_ok()
}

pub fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(clock)) = (parts.next(), parts.next()) else { return false };
    let within = |part: Option<regex::Match<'_>>, limit: &str| part.is_some_and(|m| m.as_str() <= limit);
    is_date(date)
        && CLOCK
            .captures(clock)
            .is_some_and(|c| within(c.get(1), "23") && within(c.get(2), "59") && within(c.get(3), "59"))
}

pub fn is_duration(text: &str) -> bool {
    is_go_duration(text) || is_wordy_duration(text)
}

/// `1h30m`, `-1.5s`, `0`.
fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (digits, after) = rest.split_at(number);
        let dots = digits.bytes().filter(|b| *b == b'.').count();
        let unit = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"].into_iter().find(|unit| {
            after
                .strip_prefix(unit)
                .is_some_and(|r| r.is_empty() || r.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
        });
        match unit {
            Some(unit) if dots <= 1 && digits.len() > dots => rest = &after[unit.len()..],
            _ => return false,
        }
    }
    true
}

/// `2 days`, `5 min`: one such pair anywhere is enough.
fn is_wordy_duration(text: &str) -> bool {
    const EXACT: &[&str] = &["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    const PREFIX: &[&str] = &["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    let mut found = false;
    for pair in WORDY_DURATION.captures_iter(text) {
        if pair[1].parse::<i64>().is_err() {
            return false;
        }
        let unit = pair[2].to_lowercase();
        found |= EXACT.contains(&unit.as_str()) || PREFIX.iter().any(|p| unit.starts_with(p));
    }
    found
}
