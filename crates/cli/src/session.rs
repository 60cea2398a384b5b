//! One command's conversation with the API: sends requests and knows the kinds.
//! It holds no objects; what it reads belongs to the caller.

use std::time::Duration;

use http::{
    Request, StatusCode,
    header::{RETRY_AFTER, WARNING},
};
use kube::{Client, client::Body, core::Status};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::{
    connection::{Connected, ConnectionArgs, Origin, connect},
    discovery::discover,
    environment::Environment,
    error::{CliError, Result, from_kube},
    kinds::{Kind, Kinds},
    pages::Pages,
    request::Address,
};

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

enum Answer {
    Done(Result<Reply>),
    /// Refused for now, with the pause the server asks for.
    ComeBack(Duration, Result<Reply>),
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

/// The size of the answers that long lists are cut into.
pub const DEFAULT_PAGE: u32 = 500;

/// A busy server gets a few moments; after that the person should know.
const MOST_RETRIES: u32 = 3;
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

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
        self.kinds.get_or_try_init(|| discover(self)).await
    }

    /// Asks again, after definitions were added.
    pub async fn refresh_kinds(&mut self) -> Result<()> {
        let fresh = discover(self).await?;
        self.kinds = OnceCell::new_with(Some(fresh));
        Ok(())
    }

    /// Sends one request and reads the whole answer. A server that asks to come back in a moment is
    /// asked again; it has done nothing yet.
    pub async fn send(&self, request: Request<Vec<u8>>) -> Result<Reply> {
        for _ in 0..MOST_RETRIES {
            match self.send_once(request.clone()).await? {
                Answer::Done(reply) => return reply,
                Answer::ComeBack(after, _) => tokio::time::sleep(after).await,
            }
        }
        match self.send_once(request).await? {
            Answer::Done(reply) | Answer::ComeBack(_, reply) => reply,
        }
    }

    async fn send_once(&self, request: Request<Vec<u8>>) -> Result<Answer> {
        let failed = |error| from_kube(&self.origin, error);
        let response = self.client.send(request.map(Body::from)).await.map_err(failed)?;
        let code = response.status();
        let pause = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let warnings = response.headers().get_all(WARNING).iter();
        let warnings = warnings.filter_map(|value| warning_text(value.to_str().ok()?)).collect();
        let bytes = response.into_body().collect_bytes().await.map_err(failed)?;
        if !code.is_success() {
            let refusal = Err(self.refusal(code.as_u16(), &bytes));
            let busy = matches!(code, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
            return Ok(match pause.map(Duration::from_secs) {
                Some(after) if busy && after <= LONGEST_PAUSE => Answer::ComeBack(after, refusal),
                _ => Answer::Done(refusal),
            });
        }
        let body = serde_json::from_slice(&bytes).map_err(|error| CliError::Answer {
            reason: format!("{error} in an answer of {} bytes", bytes.len()),
        })?;
        Ok(Answer::Done(Ok(Reply { created: code == StatusCode::CREATED, warnings, body })))
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
        Pages::new(self, address, accept, page)
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
pub(crate) mod testing {
    use super::*;
    use http::Response;
    use std::{collections::VecDeque, convert::Infallible, sync::Arc, sync::Mutex};

    /// An answer that a real server gives only in rare moments, and what the request must look like.
    pub struct Scene {
        pub asked: &'static str,
        pub code: u16,
        pub headers: &'static [(&'static str, &'static str)],
        pub body: String,
    }

    pub fn scene(asked: &'static str, code: u16, body: impl Into<String>) -> Scene {
        Scene { asked, code, headers: &[], body: body.into() }
    }

    /// A session whose server plays these scenes in order; it panics when asked something else.
    pub fn scripted(scenes: Vec<Scene>) -> Session {
        let scenes = Arc::new(Mutex::new(VecDeque::from(scenes)));
        let service = tower::service_fn(move |request: Request<Body>| {
            let scene = scenes.lock().unwrap().pop_front();
            let scene =
                scene.unwrap_or_else(|| panic!("nothing more is expected, but got {}", request.uri()));
            assert!(
                request.uri().to_string().contains(scene.asked),
                "{} instead of {}",
                request.uri(),
                scene.asked
            );
            let mut response = Response::builder().status(scene.code);
            for (name, value) in scene.headers {
                response = response.header(*name, *value);
            }
            let response = response.body(Body::from(scene.body.into_bytes())).unwrap();
            async move { Ok::<_, Infallible>(response) }
        });
        Session::over(Connected {
            client: Client::new(service, "default"),
            namespace: "default".into(),
            namespace_is_explicit: false,
            origin: Origin::for_tests(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        testing::{Scene, scene, scripted},
        *,
    };
    use serde_json::json;

    #[test]
    fn warnings_of_the_server_are_unquoted() {
        assert_eq!(
            warning_text(r#"299 - "unknown field \"spec.sice\"""#).unwrap(),
            "unknown field \"spec.sice\""
        );
        assert_eq!(warning_text(r#"299 - "open ended"#), None);
        assert_eq!(warning_text("199 - \"x\""), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_server_is_asked_again_but_not_for_ever() {
        let busy = || Scene { headers: &[("retry-after", "1")], ..scene("/x", 429, "") };
        let session = scripted(vec![busy(), busy(), scene("/x", 200, "{}")]);
        assert_eq!(session.get(&Address::path("/x")).await.unwrap(), json!({}));

        let session = scripted(vec![busy(), busy(), busy(), busy()]);
        let error = session.get(&Address::path("/x")).await.unwrap_err();
        assert_eq!(error.to_string(), "the API answered 429");

        let session = scripted(vec![scene("/x", 503, "starting")]);
        assert_eq!(session.get(&Address::path("/x")).await.unwrap_err().to_string(), "starting");
    }
}
