//! One command's conversation with the API: sends requests, knows the kinds, reads lists page by
//! page. It holds no objects longer than the caller does.

use http::Request;
use kube::{Client, client::Body, core::Status};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::{
    connection::{Connected, ConnectionArgs, Origin, connect},
    environment::Environment,
    error::{CliError, Result, from_kube},
    kinds::{Kind, Kinds, from_aggregated, from_resource_list},
    request::Address,
};

/// Asks for all groups in one document; servers without it send the list of groups.
const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// A client with what the commands need to know around it.
pub struct Session {
    client: Client,
    kinds: OnceCell<Kinds>,
    /// The namespace for kinds that have one.
    pub namespace: String,
    /// The user named the namespace, so an object of another one is a mistake.
    pub namespace_is_explicit: bool,
    pub origin: Origin,
}

/// A successful answer.
pub struct Reply {
    /// True when the request made a new object.
    pub created: bool,
    /// What the server wants a person to read.
    pub warnings: Vec<String>,
    pub body: Value,
}

/// Which objects of a collection.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub labels: Option<String>,
    pub fields: Option<String>,
}

impl Filter {
    pub fn named(name: &str) -> Self {
        Self { labels: None, fields: Some(format!("metadata.name={name}")) }
    }

    pub fn apply(&self, address: Address) -> Address {
        address
            .with_some("labelSelector", self.labels.as_deref())
            .with_some("fieldSelector", self.fields.as_deref())
    }
}

/// How long lists are cut into answers.
pub const DEFAULT_PAGE: u32 = 500;

impl Session {
    /// Finds the API; nothing is sent yet.
    pub async fn open(args: &ConnectionArgs, env: &Environment) -> Result<Self> {
        Ok(Self::over(connect(args, env).await?))
    }

    /// Uses a connection that exists already, such as one to a server in the same process.
    pub fn over(connected: Connected) -> Self {
        let Connected { client, namespace, namespace_is_explicit, origin } = connected;
        Self { client, kinds: OnceCell::new(), namespace, namespace_is_explicit, origin }
    }

    /// Everything the API serves, asked for once.
    pub async fn kinds(&self) -> Result<&Kinds> {
        self.kinds.get_or_try_init(|| self.discover()).await
    }

    /// Asks again, after definitions were added.
    pub async fn refresh_kinds(&mut self) -> Result<()> {
        let fresh = self.discover().await?;
        self.kinds = OnceCell::new_with(Some(fresh));
        Ok(())
    }

    async fn discover(&self) -> Result<Kinds> {
        let core = Address::path("/api").get_as(AGGREGATED)?;
        let groups = Address::path("/apis").get_as(AGGREGATED)?;
        let (core, groups) = futures::try_join!(self.send(core), self.send(groups))?;
        let legacy = groups.body.clone();
        match (from_aggregated(core.body), from_aggregated(groups.body)) {
            (Some(mut kinds), Some(others)) => {
                kinds.extend(others);
                Ok(Kinds::new(kinds))
            }
            _ => self.discover_one_by_one(&legacy).await,
        }
    }

    /// The older way, one request for each group and version.
    async fn discover_one_by_one(&self, group_list: &Value) -> Result<Kinds> {
        let mut versions = vec!["v1".to_owned()];
        for group in group_list["groups"].as_array().into_iter().flatten() {
            let preferred = group["preferredVersion"]["groupVersion"].as_str();
            let others = group["versions"].as_array().into_iter().flatten();
            let others = others.filter_map(|version| version["groupVersion"].as_str());
            versions.extend(preferred.map(str::to_owned));
            versions.extend(others.filter(|version| Some(*version) != preferred).map(str::to_owned));
        }
        let lists = versions.iter().map(|version| async move {
            let root = if version.contains('/') { "/apis" } else { "/api" };
            match self.get(&Address::path(&format!("{root}/{version}"))).await {
                Ok(list) => from_resource_list(version, list),
                // One extension server that is down must not take the rest with it.
                Err(CliError::Api { status, .. }) if status.code >= 500 || status.code == 404 => Ok(vec![]),
                Err(error) => Err(error),
            }
        });
        let lists = futures::future::try_join_all(lists).await?;
        Ok(Kinds::new(lists.into_iter().flatten().collect()))
    }

    /// Sends one request and reads the whole answer.
    pub async fn send(&self, request: Request<Vec<u8>>) -> Result<Reply> {
        let failed = |error| from_kube(&self.origin, error);
        let response = self.client.send(request.map(Body::from)).await.map_err(failed)?;
        let code = response.status();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.filter_map(|value| warning_text(value.to_str().ok()?)).collect();
        let bytes = response.into_body().collect_bytes().await.map_err(failed)?;
        if !code.is_success() {
            return Err(self.refusal(code.as_u16(), &bytes));
        }
        let body = serde_json::from_slice(&bytes).map_err(|error| CliError::Answer {
            reason: format!("{error} in an answer of {} bytes", bytes.len()),
        })?;
        Ok(Reply { created: code == http::StatusCode::CREATED, warnings, body })
    }

    pub async fn get(&self, address: &Address) -> Result<Value> {
        Ok(self.send(address.get()?).await?.body)
    }

    /// Answers that are text, such as the probes of readiness, whatever their code.
    pub async fn probe(&self, path: &str) -> Result<(u16, String)> {
        let failed = |error| from_kube(&self.origin, error);
        let request = Address::path(path).get_as("text/plain, */*")?;
        let response = self.client.send(request.map(Body::from)).await.map_err(failed)?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect_bytes().await.map_err(failed)?;
        Ok((code, String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Opens a stream of lines.
    pub async fn stream(&self, request: Request<Vec<u8>>) -> Result<impl futures::AsyncBufRead + use<>> {
        self.client.request_stream(request).await.map_err(|error| from_kube(&self.origin, error))
    }

    /// The namespace to use for a kind: none for kinds without, none for "all".
    pub fn scope(&self, kind: &Kind, all_namespaces: bool) -> Option<&str> {
        (kind.namespaced && !all_namespaces).then_some(self.namespace.as_str())
    }

    /// A list that is read in pages of at most `page` objects (0: in one piece).
    pub fn pages(&self, address: Address, accept: &'static str, page: u32) -> Pages<'_> {
        Pages { session: self, address, accept, page, next: Next::First, inconsistent: false }
    }

    /// The client itself, for commands that know their kinds.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// All objects of a collection at once, for kinds with few.
    pub async fn list(&self, address: Address) -> Result<Vec<Value>> {
        let mut pages = self.pages(address, "application/json", DEFAULT_PAGE);
        let mut all = Vec::new();
        while let Some(mut page) = pages.next().await? {
            if let Value::Array(items) = page["items"].take() {
                all.extend(items);
            }
        }
        Ok(all)
    }

    fn refusal(&self, code: u16, bytes: &[u8]) -> CliError {
        let status = serde_json::from_slice::<Status>(bytes).ok().filter(|status| !status.is_success());
        let mut status = status.unwrap_or_else(|| {
            let text = String::from_utf8_lossy(bytes);
            Status::failure(text.lines().next().unwrap_or_default().trim(), "")
        });
        if status.code == 0 {
            status.code = code;
        }
        CliError::Api { origin: Box::new(self.origin.clone()), status: status.boxed() }
    }
}

/// A list in progress.
pub struct Pages<'a> {
    session: &'a Session,
    address: Address,
    accept: &'static str,
    page: u32,
    next: Next,
    /// The list took longer than the server keeps versions, so its parts are of different times.
    pub inconsistent: bool,
}

enum Next {
    First,
    Continue(String),
    Done,
}

impl Pages<'_> {
    /// The next part of the list, or `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Value>> {
        let part = match self.fetch().await {
            Err(error) if error.is_expired() => {
                // The refusal carries a token for the rest of the list as it is now.
                self.next = Next::Continue(fresh_token(&error).ok_or(error)?);
                self.inconsistent = true;
                self.fetch().await?
            }
            other => other?,
        };
        let Some(part) = part else { return Ok(None) };
        self.next = match part["metadata"]["continue"].as_str() {
            Some(token) if !token.is_empty() => Next::Continue(token.into()),
            _ => Next::Done,
        };
        Ok(Some(part))
    }

    async fn fetch(&self) -> Result<Option<Value>> {
        let address = self.address.clone();
        let address = if self.page > 0 { address.with("limit", &self.page.to_string()) } else { address };
        let address = match &self.next {
            Next::Done => return Ok(None),
            Next::First => address,
            Next::Continue(token) => address.with("continue", token),
        };
        Ok(Some(self.session.send(address.get_as(self.accept)?).await?.body))
    }
}

fn fresh_token(error: &CliError) -> Option<String> {
    let CliError::Api { status, .. } = error else { return None };
    status.metadata.as_ref()?.continue_.clone().filter(|token| !token.is_empty())
}

/// The text of a `Warning: 299 - "text"` header.
fn warning_text(header: &str) -> Option<String> {
    let quoted = header.strip_prefix("299 ")?.split_once('"')?.1;
    let mut text = String::new();
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return Some(text),
            '\\' => text.extend(chars.next()),
            other => text.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_the_server_are_unquoted() {
        assert_eq!(
            warning_text(r#"299 - "unknown field \"spec.sice\"""#).unwrap(),
            "unknown field \"spec.sice\""
        );
        assert_eq!(warning_text(r#"299 - "open ended"#), None);
        assert_eq!(warning_text("199 - \"x\""), None);
    }
}
