//! Long lists, read page by page. A list that outlives the version it began with goes on with the
//! objects as they are then, and says so; it never ends early as if it were complete.

use serde_json::Value;

use crate::{
    error::{CliError, Result},
    request::Address,
    session::Session,
};

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

impl<'a> Pages<'a> {
    pub fn new(session: &'a Session, address: Address, accept: &'static str, page: u32) -> Self {
        Self { session, address, accept, page, next: Next::First, inconsistent: false }
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::testing::{scene, scripted};
    use serde_json::json;

    fn page(names: &[&str], next: &str) -> String {
        let items: Vec<Value> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
        json!({"kind": "List", "metadata": {"resourceVersion": "5", "continue": next}, "items": items})
            .to_string()
    }

    fn expired(token: &str) -> String {
        json!({"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410, "message": "too old",
            "metadata": {"continue": token}})
        .to_string()
    }

    #[tokio::test]
    async fn a_list_that_outlives_its_version_goes_on_with_a_fresh_token() {
        let session = scripted(vec![
            scene("/things?limit=2", 200, page(&["a", "b"], "t1")),
            scene("limit=2&continue=t1", 410, expired("t2")),
            scene("limit=2&continue=t2", 200, page(&["c"], "")),
        ]);
        let mut pages = session.pages(Address::path("/things"), "application/json", 2);
        let mut seen = 0;
        while let Some(page) = pages.next().await.unwrap() {
            seen += page["items"].as_array().unwrap().len();
        }
        assert_eq!(seen, 3);
        assert!(pages.inconsistent, "the user must hear that the parts are of different times");
    }

    #[tokio::test]
    async fn a_list_without_a_fresh_token_fails_instead_of_ending_early() {
        let session =
            scripted(vec![scene("/things", 200, page(&["a"], "t1")), scene("continue=t1", 410, expired(""))]);
        let error = session.list(Address::path("/things")).await.unwrap_err();
        assert!(error.is_expired(), "{error}");
    }
}
