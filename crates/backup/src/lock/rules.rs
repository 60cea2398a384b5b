//! Who has to wait for whom, given the lock objects that everybody sees.
//! Must never ask a clock or the store: it is the same decision on every machine.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a lock is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Backup or restore: beside others of its kind.
    Shared,
    /// Deletion: alone.
    Exclusive,
    /// Written by somebody we do not understand, so it is given way to.
    Unknown,
}

impl LockKind {
    fn number(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::Shared => 1,
            Self::Exclusive => 2,
        }
    }

    fn allows(self, other: Self) -> bool {
        self == Self::Shared && other == Self::Shared
    }
}

impl fmt::Display for LockKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Shared => "backup or restore",
            Self::Exclusive => "deletion",
            Self::Unknown => "unknown",
        })
    }
}

/// A lock object's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct LockFile {
    pub name: String,
    #[serde(rename = "Type")]
    number: u8,
    /// False while its owner still looks whether it may.
    pub acquired: bool,
}

impl LockFile {
    pub fn new(name: &str, kind: LockKind, acquired: bool) -> Self {
        Self { name: name.to_owned(), number: kind.number(), acquired }
    }

    pub fn kind(&self) -> LockKind {
        match self.number {
            1 => LockKind::Shared,
            2 => LockKind::Exclusive,
            _ => LockKind::Unknown,
        }
    }
}

/// A lock as the listing shows it, with the server's time of its last write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenLock {
    pub file: LockFile,
    pub modified: Timestamp,
}

impl SeenLock {
    pub fn is_expired(&self, now: Timestamp, expiry: Duration) -> bool {
        now.duration_since(self.modified).unsigned_abs() > expiry && now > self.modified
    }

    /// Owners go before those who wait, the older before the younger; the name decides between equals.
    fn goes_before(&self, other: &Self) -> bool {
        let rank = |lock: &Self| (!lock.file.acquired, lock.modified);
        (rank(self), &self.file.name) < (rank(other), &other.file.name)
    }
}

/// The lock that `ours` has to wait for, if any.
pub fn obstacle<'a>(
    ours: &SeenLock,
    all: &'a [SeenLock],
    now: Timestamp,
    expiry: Duration,
) -> Option<&'a SeenLock> {
    all.iter().find(|other| {
        other.file.name != ours.file.name
            && !ours.file.kind().allows(other.file.kind())
            && other.goes_before(ours)
            && !other.is_expired(now, expiry)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::LockKind::{self, Exclusive, Shared, Unknown};
    use super::{LockFile, SeenLock, obstacle};

    const EXPIRY: Duration = Duration::from_secs(150);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn lock(name: &str, kind: LockKind, acquired: bool, second: i64) -> SeenLock {
        SeenLock { file: LockFile::new(name, kind, acquired), modified: at(second) }
    }

    #[test]
    fn the_object_is_that_of_existing_stores() {
        let text = r#"{"Name":"lock-1","Type":2,"Acquired":true}"#;
        let file: LockFile = serde_json::from_str(text).unwrap();
        assert_eq!(file, LockFile::new("lock-1", Exclusive, true));
        assert_eq!(serde_json::to_string(&file).unwrap(), text);
    }

    #[test]
    fn who_waits_for_whom() {
        let ours = |kind| lock("lock-m", kind, false, 10);
        let table = [
            (ours(Shared), lock("lock-a", Shared, true, 1), false, "backups go together"),
            (ours(Shared), lock("lock-a", Exclusive, true, 5), true, "a deletion is under way"),
            (ours(Shared), lock("lock-a", Exclusive, true, 20), true, "an owner refreshes its lock"),
            (ours(Shared), lock("lock-a", Exclusive, false, 5), true, "a deletion has waited longer"),
            (ours(Shared), lock("lock-z", Exclusive, false, 20), false, "a deletion came later"),
            (ours(Shared), lock("lock-a", Exclusive, false, 10), true, "the same second: the name decides"),
            (ours(Shared), lock("lock-z", Exclusive, false, 10), false, "the same second: the name decides"),
            (ours(Exclusive), lock("lock-a", Shared, true, 5), true, "a backup is under way"),
            (ours(Exclusive), lock("lock-a", Exclusive, true, 5), true, "one deletion at a time"),
            (ours(Exclusive), lock("lock-a", Unknown, true, 5), true, "nobody knows what that is"),
            (
                ours(Exclusive),
                lock("lock-a", Shared, true, -141),
                false,
                "its owner has been gone for too long",
            ),
            (ours(Exclusive), lock("lock-a", Shared, true, -139), true, "its owner may still come back"),
        ];
        for (ours, other, waits, why) in table {
            let seen = [ours.clone(), other];
            assert_eq!(obstacle(&ours, &seen, at(10), EXPIRY).is_some(), waits, "{why}");
        }
    }

    #[test]
    fn of_any_two_that_do_not_go_together_exactly_one_waits() {
        let kinds = [Shared, Exclusive, Unknown];
        for (first, second) in kinds.iter().flat_map(|first| kinds.map(|second| (*first, second))) {
            for offset in [-1, 0, 1] {
                for acquired in [(false, false), (true, false), (false, true)] {
                    let seen =
                        [lock("lock-a", first, acquired.0, 0), lock("lock-b", second, acquired.1, offset)];
                    let waits =
                        seen.iter().filter(|ours| obstacle(ours, &seen, at(2), EXPIRY).is_some()).count();
                    let expected = usize::from((first, second) != (Shared, Shared));
                    assert_eq!(waits, expected, "{seen:?}");
                }
            }
        }
    }
}
