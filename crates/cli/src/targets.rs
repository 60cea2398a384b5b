//! Which objects a command line means: `KIND NAME…`, `KIND/NAME…`, several kinds at once.
//! Names only; nothing here asks whether the objects exist.

use crate::{
    error::{CliError, Result},
    kinds::{Kind, Kinds},
};

/// What was asked of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub kind: Kind,
    /// Empty: the whole collection.
    pub names: Vec<String>,
}

/// Understands the words after the verb.
///
/// * `pods`, `pods,pvc`: collections
/// * `pod a b`: objects of one kind
/// * `pod/a pvc/b`: objects of any kinds; same kinds in a row are put together
pub fn parse(words: &[String], kinds: &Kinds) -> Result<Vec<Target>> {
    let Some(first) = words.first() else {
        return Err(CliError::Usage("name a kind, such as `pvc`; `granary kinds` lists them".into()));
    };
    if words.iter().any(|word| word.contains('/')) {
        by_slash(words, kinds)
    } else {
        by_kind(first, &words[1..], kinds)
    }
}

fn by_kind(kinds_word: &str, names: &[String], kinds: &Kinds) -> Result<Vec<Target>> {
    let mut targets: Vec<Target> = Vec::new();
    for word in kinds_word.split(',').filter(|word| !word.is_empty()) {
        for kind in kinds.resolve(word)? {
            if !targets.iter().any(|target| target.kind == *kind) {
                targets.push(Target { kind: kind.clone(), names: names.to_vec() });
            }
        }
    }
    match targets.as_slice() {
        [] => Err(CliError::Usage("name a kind, such as `pvc`; `granary kinds` lists them".into())),
        [_, _, ..] if !names.is_empty() => {
            Err(CliError::Usage("names make sense for one kind; for more write KIND/NAME KIND/NAME".into()))
        }
        _ => Ok(targets),
    }
}

fn by_slash(words: &[String], kinds: &Kinds) -> Result<Vec<Target>> {
    let mut targets: Vec<Target> = Vec::new();
    for word in words {
        let (kind, name) = word
            .split_once('/')
            .filter(|(kind, name)| !kind.is_empty() && !name.is_empty() && !name.contains('/'))
            .ok_or_else(|| CliError::Usage(format!("{word:?} is not KIND/NAME")))?;
        let kind = kinds.resolve_one(kind)?;
        match targets.last_mut() {
            Some(last) if last.kind == *kind => last.names.push(name.into()),
            _ => targets.push(Target { kind: kind.clone(), names: vec![name.into()] }),
        }
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{exit::Exit, kinds::testing::storage_cluster};

    fn targets(line: &str) -> Result<Vec<String>> {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        let found = parse(&words, &storage_cluster())?;
        Ok(found
            .iter()
            .map(|target| format!("{} {}", target.kind.full_plural(), target.names.join(" ")))
            .collect())
    }

    #[test]
    fn objects_can_be_named_in_every_usual_way() {
        assert_eq!(targets("pods").unwrap(), ["pods "]);
        assert_eq!(targets("pod a b").unwrap(), ["pods a b"]);
        assert_eq!(targets("po,pvc").unwrap(), ["pods ", "persistentvolumeclaims "]);
        assert_eq!(targets("po,pods,").unwrap(), ["pods "]);
        assert_eq!(targets("pod/a pod/b lhv/c").unwrap(), ["pods a b", "volumes.longhorn.io c"]);
        assert_eq!(targets("volume.longhorn.io/x").unwrap(), ["volumes.longhorn.io x"]);
        assert_eq!(targets("all").unwrap(), ["pods ", "deployments.apps "]);
    }

    #[test]
    fn unclear_words_are_usage_errors() {
        for line in ["", "pods,pvc a", "pod/a b", "pod/", "/a", "pod/a/b", ",", "settings/x"] {
            let error = targets(line).unwrap_err();
            assert_eq!(error.exit(), Exit::Usage, "{line:?} gave {error}");
        }
        assert_eq!(targets("nonsense").unwrap_err().exit(), Exit::NotFound);
    }
}
