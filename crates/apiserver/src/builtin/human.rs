//! Durations and ages the way `kubectl get` prints them.
//!
//! Owns the rounding rules. Must never ask the clock itself; the caller says what time it is.

use jiff::Timestamp;
use serde_json::Value;

use super::access::at;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Two or three significant figures: `45s`, `5m12s`, `3h20m`, `3d4h`, `2y10d`.
pub fn human_duration(seconds: i64) -> String {
    match seconds {
        // Clocks of two machines may disagree by a moment; more than that is not a duration.
        ..=-2 => "<invalid>".into(),
        -1 => "0s".into(),
        0..120 => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two_units(seconds, (MINUTE, "m"), (1, "s")),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two_units(seconds, (HOUR, "h"), (MINUTE, "m")),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two_units(seconds, (DAY, "d"), (HOUR, "h")),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two_units(seconds, (YEAR, "y"), (DAY, "d")),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// The time since an RFC 3339 text; `<unknown>` when there is none.
pub fn since(time: &Value, now: Timestamp) -> String {
    match parse(time) {
        Some(then) => human_duration(now.duration_since(then).as_secs()),
        None => "<unknown>".into(),
    }
}

/// The time since the object was created.
pub fn age(object: &Value, now: Timestamp) -> String {
    since(at(object, "/metadata/creationTimestamp"), now)
}

/// The moment that an RFC 3339 text names.
pub fn parse(time: &Value) -> Option<Timestamp> {
    time.as_str()?.parse().ok()
}

fn two_units(seconds: i64, (big, big_name): (i64, &str), (small, small_name): (i64, &str)) -> String {
    let rest = seconds % big / small;
    let whole = seconds / big;
    if rest == 0 { format!("{whole}{big_name}") } else { format!("{whole}{big_name}{rest}{small_name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn durations_read_as_kubectl_prints_them() {
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (312, "5m12s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 20 * MINUTE, "3h20m"),
            (8 * HOUR, "8h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (3 * DAY + 4 * HOUR, "3d4h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + 10 * DAY, "2y10d"),
            (8 * YEAR, "8y"),
            (9 * YEAR - 1, "8y"),
        ] {
            assert_eq!(human_duration(seconds), text, "{seconds} seconds");
        }
    }

    #[test]
    fn an_object_without_a_creation_time_has_no_known_age() {
        let now: Timestamp = "2024-05-01T12:00:00Z".parse().unwrap();
        assert_eq!(age(&json!({}), now), "<unknown>");
        assert_eq!(age(&json!({ "metadata": { "creationTimestamp": "soon" } }), now), "<unknown>");
        assert_eq!(
            age(&json!({ "metadata": { "creationTimestamp": "2024-05-01T11:54:48Z" } }), now),
            "5m12s"
        );
    }
}
