//! Who may use the API: bearer tokens, known only by their hashes, and two roles.
//!
//! A token is a Secret of type `granary.io/token` in `granary-system`, so tokens are made, listed and revoked
//! like any other object. Must never keep or log a token itself.

mod identity;

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use parking_lot::RwLock;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub use identity::{Identity, Role};

use crate::store::{Prefix, Store};

pub const SYSTEM_NAMESPACE: &str = "granary-system";
pub const TOKEN_TYPE: &str = "granary.io/token";

/// Tokens carry this prefix, so that scanners for leaked secrets can find them.
const PREFIX: &str = "granary_";

type Hash = [u8; 32];

/// Knows callers by the hash of their token.
pub struct Authenticator {
    store: Store,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    by_hash: HashMap<Hash, Identity>,
    /// Changes to tokens up to this revision are in `by_hash`.
    revision: u64,
    loaded: bool,
}

/// A new random token of 256 bits.
pub fn new_token() -> String {
    let mut bytes = [0u8; 32];
    bytes[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    bytes[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    // A UUID has six fixed bits; the hash of two of them with both their entropies has none.
    let bytes: Hash = Sha256::digest(bytes).into();
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
}

fn hash(token: &str) -> Hash {
    // A token has more entropy than the hash can lose, so a slow password hash would only cost every request.
    Sha256::digest(token.as_bytes()).into()
}

/// The Secret that makes `token` valid for `user`.
pub fn token_secret(user: &str, role: Role, token: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": format!("token-{user}"), "namespace": SYSTEM_NAMESPACE },
        "type": TOKEN_TYPE,
        "data": {
            "user": STANDARD.encode(user),
            "role": STANDARD.encode(role.name()),
            "sha256": STANDARD.encode(hash(token)),
        },
    })
}

/// Whether this Secret makes `token` valid.
pub fn secret_is_for(secret: &Value, token: &str) -> bool {
    parse_secret(secret).is_some_and(|(known, _)| known == hash(token))
}

fn parse_secret(secret: &Value) -> Option<(Hash, Identity)> {
    if secret["type"] != TOKEN_TYPE || secret["metadata"]["deletionTimestamp"].is_string() {
        return None;
    }
    let field = |name: &str| STANDARD.decode(secret["data"][name].as_str()?).ok();
    let hash = field("sha256")?.try_into().ok()?;
    let user = String::from_utf8(field("user")?).ok()?;
    let role = Role::parse(std::str::from_utf8(&field("role")?).ok()?)?;
    Some((hash, Identity { user, role }))
}

impl Authenticator {
    pub fn new(store: Store) -> Self {
        Self { store, known: RwLock::default() }
    }

    /// The caller that a bearer token stands for.
    pub fn identify(&self, token: &str) -> Option<Identity> {
        if token.is_empty() {
            return None;
        }
        self.refresh();
        self.known.read().by_hash.get(&hash(token)).cloned()
    }

    /// A caller by name, for questions about others.
    pub fn subject(&self, user: &str, groups: &[Value]) -> Option<Identity> {
        self.refresh();
        let known = self.known.read().by_hash.values().find(|i| i.user == user).cloned();
        let by_group = [Role::Admin, Role::ReadOnly]
            .into_iter()
            .find(|role| groups.iter().any(|g| g == role.group()))
            .map(|role| Identity { user: user.into(), role });
        known.or(by_group)
    }

    /// Takes in changes to tokens, so that a revoked one ends with the deletion of its Secret.
    fn refresh(&self) {
        let current = self.store.revision();
        {
            let known = self.known.read();
            if known.loaded && known.revision == current {
                return;
            }
        }
        let mut known = self.known.write();
        let prefix = Prefix::namespace("secrets.", SYSTEM_NAMESPACE);
        while known.loaded && known.revision < current {
            match self.store.events_after(known.revision, &prefix, 1) {
                Ok((events, cursor)) if events.is_empty() && cursor > known.revision => {
                    known.revision = cursor;
                }
                Ok((events, _)) if events.is_empty() => break,
                _ => known.loaded = false,
            }
        }
        if !known.loaded {
            self.load(&mut known, &prefix);
        }
    }

    fn load(&self, known: &mut Known, prefix: &Prefix) {
        let read = || {
            let snapshot = self.store.snapshot(None)?;
            let mut by_hash = HashMap::new();
            let mut start = None;
            loop {
                let page = snapshot.page(prefix, start.as_deref(), usize::MAX, |_, _| true)?;
                for stored in page.items {
                    let secret = serde_json::from_slice(&stored.json).unwrap_or_default();
                    by_hash.extend(parse_secret(&secret));
                }
                match page.next {
                    Some(next) => start = Some(next),
                    None => return Ok::<_, crate::store::StoreError>((by_hash, snapshot.revision())),
                }
            }
        };
        match read() {
            Ok((by_hash, revision)) => *known = Known { by_hash, revision, loaded: true },
            Err(error) => tracing::error!(%error, "tokens cannot be read"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Role, new_token, secret_is_for, token_secret};

    #[test]
    fn a_secret_vouches_for_its_token_and_does_not_contain_it() {
        let token = new_token();
        let secret = token_secret("eve", Role::ReadOnly, &token);
        assert!(secret_is_for(&secret, &token));
        assert!(!secret_is_for(&secret, &new_token()));
        assert!(!secret.to_string().contains(&token));
    }
}
