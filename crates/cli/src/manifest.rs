//! Objects from files: YAML or JSON, one or many in a file, a directory of files, or standard input.
//! It checks that each is an object with a kind and a name; whether the API likes it is the API's say.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::error::{CliError, Result};

/// An object as written by the user.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub object: Value,
    /// File and position in it, for messages.
    pub place: String,
}

impl Manifest {
    pub fn api_version(&self) -> &str {
        self.object["apiVersion"].as_str().unwrap_or_default()
    }

    pub fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub fn namespace(&self) -> Option<&str> {
        self.object["metadata"]["namespace"].as_str().filter(|namespace| !namespace.is_empty())
    }

    pub fn is_namespace(&self) -> bool {
        self.api_version() == "v1" && self.kind() == "Namespace"
    }

    pub fn is_definition(&self) -> bool {
        self.api_version().starts_with("apiextensions.k8s.io/") && self.kind() == "CustomResourceDefinition"
    }

    pub fn error(&self, reason: impl Into<String>) -> CliError {
        CliError::Manifest { place: self.place.clone(), reason: reason.into() }
    }

    /// What others need comes first. Within a rank the user's order stays.
    fn rank(&self) -> u8 {
        match () {
            () if self.is_namespace() => 0,
            () if self.is_definition() => 1,
            () => 2,
        }
    }
}

/// Reads every object that `-f` names, in an order in which they can be applied.
pub fn read_all(files: &[PathBuf], recursive: bool) -> Result<Vec<Manifest>> {
    let mut manifests = Vec::new();
    for file in files {
        if file.as_os_str() == "-" {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|source| CliError::ReadFile { path: "standard input".into(), source })?;
            manifests.extend(parse(&text, "standard input")?);
        } else if file.is_dir() {
            let found = files_in(file, recursive)?;
            if found.is_empty() {
                let reason = "no .yaml, .yml or .json file in this directory".into();
                return Err(CliError::Manifest { place: file.display().to_string(), reason });
            }
            for file in found {
                manifests.extend(read_file(&file)?);
            }
        } else {
            manifests.extend(read_file(file)?);
        }
    }
    if manifests.is_empty() {
        return Err(CliError::Usage("there is no object in what -f names".into()));
    }
    manifests.sort_by_key(Manifest::rank);
    Ok(manifests)
}

fn read_file(path: &Path) -> Result<Vec<Manifest>> {
    let text =
        std::fs::read_to_string(path).map_err(|source| CliError::ReadFile { path: path.into(), source })?;
    parse(&text, &path.display().to_string())
}

fn files_in(dir: &Path, recursive: bool) -> Result<Vec<PathBuf>> {
    let unreadable = |source| CliError::ReadFile { path: dir.into(), source };
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        entries.push(entry.map_err(unreadable)?.path());
    }
    entries.sort();
    let mut files = Vec::new();
    for path in entries {
        if path.is_dir() {
            if recursive {
                files.extend(files_in(&path, true)?);
            }
        } else if path.extension().is_some_and(|ext| ext == "yaml" || ext == "yml" || ext == "json") {
            files.push(path);
        }
    }
    Ok(files)
}

/// Reads the documents of one text; `List` objects are taken apart.
fn parse(text: &str, place: &str) -> Result<Vec<Manifest>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let documents = if is_json(text) { parse_json(text) } else { parse_yaml(text) };
    let documents = documents.map_err(|reason| CliError::Manifest { place: place.into(), reason })?;
    let many = documents.len() > 1;
    let mut manifests = Vec::new();
    for (at, document) in documents.into_iter().enumerate() {
        if document.is_null() {
            continue;
        }
        let place = if many { format!("{place}, document {}", at + 1) } else { place.to_owned() };
        take_apart(document, place, &mut manifests)?;
    }
    Ok(manifests)
}

/// YAML may start with a brace too, but nobody quotes its keys then.
fn is_json(text: &str) -> bool {
    text.trim_start().strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with('"'))
}

fn parse_json(text: &str) -> Result<Vec<Value>, String> {
    let stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    stream.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

fn parse_yaml(text: &str) -> Result<Vec<Value>, String> {
    let options = serde_saphyr::options! {
        // `defaultMode: 0644` is octal to every Kubernetes tool.
        legacy_octal_numbers: true,
        // The user's own files are as long as they are; only nesting is bounded, for the stack.
        budget: serde_saphyr::budget! {
            max_documents: usize::MAX,
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
            max_depth: 256,
        },
    };
    let parsed = serde_saphyr::from_multiple_with_options(text, options);
    parsed.map_err(|error| error.to_string().trim_start_matches("error: ").to_owned())
}

fn take_apart(document: Value, place: String, into: &mut Vec<Manifest>) -> Result<()> {
    let mut manifest = Manifest { object: document, place };
    if !manifest.object.is_object() {
        return Err(manifest.error("this is not an object"));
    }
    if manifest.kind().is_empty() || manifest.api_version().is_empty() {
        let missing = if manifest.kind().is_empty() { "kind" } else { "apiVersion" };
        return Err(manifest.error(format!("{missing} is missing")));
    }
    if manifest.kind().ends_with("List") && manifest.object["items"].is_array() {
        if let Value::Array(items) = manifest.object["items"].take() {
            for (at, item) in items.into_iter().enumerate() {
                take_apart(item, format!("{}, item {}", manifest.place, at + 1), into)?;
            }
        }
        return Ok(());
    }
    if manifest.name().is_empty() {
        let reason = if manifest.object["metadata"]["generateName"].is_string() {
            "metadata.generateName makes a new object each time, which cannot be applied; give it a name"
        } else {
            "metadata.name is missing"
        };
        return Err(manifest.error(format!("{}: {reason}", manifest.kind())));
    }
    into.push(manifest);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names(manifests: &[Manifest]) -> Vec<String> {
        manifests.iter().map(|manifest| format!("{}/{}", manifest.kind(), manifest.name())).collect()
    }

    const MIXED: &str = "\
# a comment only document
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: one, namespace: shop}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
";

    #[test]
    fn a_directory_is_applied_with_what_others_need_first() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("b.yaml"), MIXED).unwrap();
        std::fs::write(
            dir.path().join("a.json"),
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}"#,
        )
        .unwrap();
        std::fs::write(dir.path().join("README.md"), "not a manifest").unwrap();
        let manifests = read_all(&[dir.path().into()], false).unwrap();
        assert_eq!(
            names(&manifests),
            [
                "Namespace/shop",
                "CustomResourceDefinition/widgets.example.com",
                "Pod/p",
                "Widget/one",
                "ConfigMap/a",
                "ConfigMap/b"
            ]
        );
    }

    #[test]
    fn directories_below_are_read_only_when_asked() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("sub/x.yml"), "{apiVersion: v1, kind: Pod, metadata: {name: p}}")
            .unwrap();
        assert!(read_all(&[dir.path().into()], false).is_err());
        assert_eq!(names(&read_all(&[dir.path().into()], true).unwrap()), ["Pod/p"]);
    }

    #[test]
    fn numbers_and_words_mean_what_they_mean_to_kubectl() {
        let text = "apiVersion: v1\nkind: X\nmetadata: {name: x}\nmode: 0644\nsize: 10Gi\nday: \"on\"\ny: 1\nbig: 1e3\nport: 080\n";
        let object = &parse(text, "f").unwrap()[0].object;
        assert_eq!(object["mode"], json!(420));
        assert_eq!(object["size"], json!("10Gi"));
        assert_eq!(object["day"], json!("on"));
        assert_eq!(object["y"], json!(1));
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        let message = |text: &str| parse(text, "f.yaml").unwrap_err().to_string();
        assert_eq!(message("kind: Pod"), "f.yaml: apiVersion is missing");
        assert_eq!(message("just text"), "f.yaml: this is not an object");
        assert_eq!(message("{apiVersion: v1, kind: Pod}"), "f.yaml: Pod: metadata.name is missing");
        let second = message("{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n{apiVersion: v1}");
        assert_eq!(second, "f.yaml, document 2: kind is missing");
        let generated = message("{apiVersion: v1, kind: Pod, metadata: {generateName: a-}}");
        assert!(generated.contains("give it a name"), "{generated}");
        assert!(message("a: [1\nb: 2").starts_with("f.yaml: "));
        assert!(message("{\"a\": }").contains("line 1"));
    }

    #[test]
    fn thousands_of_objects_in_one_file_are_fine() {
        let text: String = (0..3_000)
            .map(|n| format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{n}}}\n"))
            .collect();
        assert_eq!(parse(&text, "f").unwrap().len(), 3_000);
    }
}
