//! Durations as people type them (`30s`, `5m`, `1h30m`) and ages as Kubernetes prints them.
//! Pure text; it never reads a clock.

use std::time::Duration;

use jiff::Timestamp;

/// Reads `90`, `30s`, `1h30m`, `500ms`. A bare number counts seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is no duration; examples: 30s, 5m, 1h30m");
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
        let number: u64 = rest[..digits].parse().map_err(|_| bad())?;
        rest = &rest[digits..];
        let unit_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let step = match &rest[..unit_end] {
            "ms" => Some(Duration::from_millis(number)),
            "s" => Some(Duration::from_secs(number)),
            "m" => number.checked_mul(60).map(Duration::from_secs),
            "h" => number.checked_mul(3_600).map(Duration::from_secs),
            "d" => number.checked_mul(86_400).map(Duration::from_secs),
            _ => None,
        };
        total = step.and_then(|step| total.checked_add(step)).ok_or_else(bad)?;
        rest = &rest[unit_end..];
    }
    if text.is_empty() { Err(bad()) } else { Ok(total) }
}

/// The inverse of [`parse`], without units that are zero.
pub fn show(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let parts = [(seconds / 3_600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let text: String = parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect();
    match (text.is_empty(), duration.subsec_millis()) {
        (true, 0) => "0s".into(),
        (true, millis) => format!("{millis}ms"),
        (false, _) => text,
    }
}

/// The age of something, with the precision that Kubernetes uses: exact when young, rough when old.
pub fn age(since: Timestamp, now: Timestamp) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let seconds = now.duration_since(since).as_secs();
    let two = |big: i64, big_unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{big}{big_unit}") } else { format!("{big}{big_unit}{small}{small_unit}") }
    };
    match seconds {
        ..-1 => "<invalid>".into(),
        -1..0 => "0s".into(),
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(s / MINUTE, "m", s % MINUTE, "s"),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(s / HOUR, "h", s / MINUTE % 60, "m"),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(s / DAY, "d", s / HOUR % 24, "h"),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(s / YEAR, "y", s / DAY % 365, "d"),
        s => format!("{}y", s / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn people_type_durations_in_several_ways() {
        assert_eq!(parse("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(parse("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("0"), Ok(Duration::ZERO));
        assert_eq!(parse("1500ms"), Ok(Duration::from_millis(1_500)));
        for wrong in ["", "s", "5x", "-3s", "1h-", "m5", "99999999999999999999d", "18446744073709551615d"] {
            assert!(parse(wrong).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn ages_read_as_they_do_elsewhere_in_kubernetes() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let age_of = |seconds: i64| age(Timestamp::from_second(now.as_second() - seconds).unwrap(), now);
        assert_eq!(age_of(0), "0s");
        assert_eq!(age_of(119), "119s");
        assert_eq!(age_of(120), "2m");
        assert_eq!(age_of(330), "5m30s");
        assert_eq!(age_of(3_599), "59m");
        assert_eq!(age_of(3 * 3_600 + 300), "3h5m");
        assert_eq!(age_of(47 * 3_600), "47h");
        assert_eq!(age_of(3 * 86_400 + 4 * 3_600), "3d4h");
        assert_eq!(age_of(100 * 86_400), "100d");
        assert_eq!(age_of(2 * 365 * 86_400 + 30 * 86_400), "2y30d");
        assert_eq!(age_of(9 * 365 * 86_400), "9y");
        assert_eq!(age_of(-1), "0s");
        assert_eq!(age_of(-60), "<invalid>");
    }

    proptest! {
        #[test]
        fn what_is_shown_can_be_typed_again(seconds in 0u64..10_000_000) {
            let duration = Duration::from_secs(seconds);
            prop_assert_eq!(parse(&show(duration)), Ok(duration));
        }
    }
}
