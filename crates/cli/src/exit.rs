//! The exit codes that scripts can rely on. The numbers are part of the interface: a new
//! meaning gets a new number, an old number never changes its meaning.

use std::process::ExitCode;

/// How a command ended, as the shell sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Done, and all is well.
    Ok = 0,
    /// It failed for a reason without a number of its own, or `status` found something to look at.
    Attention = 1,
    /// The command line makes no sense (also what clap answers with).
    Usage = 2,
    /// The object, or the kind, does not exist.
    NotFound = 3,
    /// Somebody else changed or owns it, or it exists already.
    Conflict = 4,
    /// The credentials were refused or do not allow this.
    Forbidden = 5,
    /// The time given to wait ran out.
    Timeout = 6,
    /// No API answered.
    Unreachable = 7,
}

/// For `after_help` of the program, so that `--help` documents the codes.
pub const EXIT_CODES_HELP: &str = "\
Exit codes:
  0  done, all is well
  1  error, or `status` found something that needs attention
  2  wrong usage
  3  not found (an object or a kind)
  4  conflict, or it already exists
  5  credentials refused or not allowed
  6  time ran out while waiting
  7  no API could be reached";

impl Exit {
    /// The number the process exits with.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_documented_with_its_number() {
        let all = [
            Exit::Ok,
            Exit::Attention,
            Exit::Usage,
            Exit::NotFound,
            Exit::Conflict,
            Exit::Forbidden,
            Exit::Timeout,
            Exit::Unreachable,
        ];
        for (number, exit) in all.into_iter().enumerate() {
            assert_eq!(usize::from(exit.code()), number);
            assert!(EXIT_CODES_HELP.contains(&format!("\n  {number}  ")), "code {number} is not in the help");
        }
    }
}
