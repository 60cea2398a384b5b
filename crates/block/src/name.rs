//! What volumes, and whatever else is named by people, may be called. Names become parts of paths, so none may lead
//! elsewhere.

const LONGEST: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("it is empty")]
    Empty,
    #[error("it is longer than {LONGEST} characters")]
    TooLong,
    #[error("it must begin with a letter or digit")]
    Beginning,
    #[error("use letters, digits, '.', '_' and '-'")]
    Letters,
}

pub fn check(name: &str) -> Result<(), NameError> {
    let good = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    if name.is_empty() {
        Err(NameError::Empty)
    } else if name.len() > LONGEST {
        Err(NameError::TooLong)
    } else if name.starts_with(['.', '-']) {
        Err(NameError::Beginning)
    } else if !name.chars().all(good) {
        Err(NameError::Letters)
    } else {
        Ok(())
    }
}

/// For command lines.
pub fn parse(name: &str) -> Result<String, NameError> {
    check(name).map(|()| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_elsewhere() {
        for good in ["v", "pvc-1c0f", "a.b_c", "9", &"x".repeat(LONGEST)] {
            assert_eq!(check(good), Ok(()));
        }
        for bad in ["", ".", "..", "../v", "a/b", "-v", " ", "a b", "é", "a\0", &"x".repeat(LONGEST + 1)] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }
}
