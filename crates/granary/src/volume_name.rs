//! What a volume may be called. Names become parts of paths, so none may lead elsewhere.

const LONGEST: usize = 200;

/// For the command line.
pub fn parse(text: &str) -> Result<String, String> {
    let good = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    if text.is_empty() || text.len() > LONGEST {
        return Err(format!("a name has 1 to {LONGEST} characters"));
    }
    if text.starts_with(['.', '-']) || !text.chars().all(good) {
        return Err("use letters, digits, '.', '_' and '-', and begin with a letter or digit".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_elsewhere() {
        for good in ["v", "pvc-1c0f", "a.b_c", "9", &"x".repeat(LONGEST)] {
            assert_eq!(parse(good).as_deref(), Ok(good));
        }
        for bad in ["", ".", "..", "../v", "a/b", "-v", " ", "a b", "é", "a\0", &"x".repeat(LONGEST + 1)] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
