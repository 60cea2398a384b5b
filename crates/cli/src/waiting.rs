//! Waiting for one object to reach a goal, by watching it; polling happens nowhere.

use serde_json::Value;
use tokio::time::Instant;

use crate::{
    error::{CliError, Result},
    follow::{Change, Follow, Step},
    goal::Goal,
    selection::ObjectRef,
    session::{Filter, Session},
};

/// When to give up, and how long that was in the user's words.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    started: Instant,
    pub allowed: std::time::Duration,
}

impl Deadline {
    pub fn after(allowed: std::time::Duration) -> Self {
        Self { started: Instant::now(), allowed }
    }

    /// A nearer deadline, from now, that is never later than this one.
    pub fn capped(&self, at_most: std::time::Duration) -> Self {
        Self::after(at_most.min(self.allowed.saturating_sub(self.started.elapsed())))
    }

    pub fn is_over(&self) -> bool {
        self.started.elapsed() >= self.allowed
    }

    /// `None` when it is further away than clocks reach.
    fn at(&self) -> Option<Instant> {
        self.started.checked_add(self.allowed)
    }
}

/// One object under observation.
pub struct Waiter<'a> {
    pub session: &'a Session,
    pub object: &'a ObjectRef,
    pub goal: &'a Goal,
    /// Only this incarnation counts: one that was made anew under the same name is another object.
    pub uid: Option<&'a str>,
}

impl Waiter<'_> {
    /// Returns when the goal is met. An object that does not exist fails at once, unless its
    /// existence is what is waited for.
    pub async fn reach(&self, deadline: Deadline) -> Result<()> {
        let (mut seen, version) = self.look().await?;
        if self.decide(seen.as_ref())? {
            return Ok(());
        }
        let mut follow = Follow::new(self.session, self.filtered(), "application/json", &version);
        loop {
            let step = match deadline.at() {
                Some(at) => tokio::time::timeout_at(at, follow.next()).await,
                None => Ok(follow.next().await),
            };
            let step = step.map_err(|_| self.too_late(deadline, seen.as_ref()))?;
            match step? {
                Step::Changed(Change::Deleted, _) => seen = None,
                Step::Changed(_, object) => seen = Some(object),
                Step::Expired => {
                    let (object, version) = self.look().await?;
                    seen = object;
                    follow.restart(&version);
                }
            }
            if self.decide(seen.as_ref())? {
                return Ok(());
            }
        }
    }

    fn filtered(&self) -> crate::request::Address {
        Filter::named(&self.object.name).apply(self.object.collection())
    }

    /// The object as it is now and the version from which changes follow.
    async fn look(&self) -> Result<(Option<Value>, String)> {
        let mut list = self.session.get(&self.filtered()).await?;
        let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        let object = list["items"].as_array_mut().and_then(Vec::pop);
        Ok((object, version))
    }

    fn decide(&self, seen: Option<&Value>) -> Result<bool> {
        let seen = seen.filter(|object| self.uid.is_none_or(|uid| object["metadata"]["uid"] == uid));
        if self.goal.is_met(seen) {
            return Ok(true);
        }
        if seen.is_none() && *self.goal != Goal::Create {
            return Err(CliError::NotFound {
                object: self.object.to_string(),
                hint: Some("use --for=create to wait until it exists".into()),
            });
        }
        Ok(false)
    }

    fn too_late(&self, deadline: Deadline, seen: Option<&Value>) -> CliError {
        CliError::Timeout {
            after: deadline.allowed,
            what: format!("{} of {}", self.goal, self.object),
            seen: Some(self.goal.now(seen)),
            hint: seen.map(|_| format!("`{}` shows more", self.object.describe_command())),
        }
    }
}
