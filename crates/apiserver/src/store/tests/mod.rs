//! The store against a simple model, under load, and on disks that fail.

mod concurrency;
mod disk;
mod faults;
mod file;
mod model;
mod properties;

use proptest::test_runner::Config as ProptestConfig;
use serde_json::{Value, json};

use super::{Action, Expect, Key, Options, Prefix, Store, Write};
use disk::Disk;

/// Numbers from a seed, so that every failure can be had again.
pub(super) struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// How often a property is tried; the environment can ask for more.
fn config(cases: u32) -> ProptestConfig {
    let wanted = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok());
    ProptestConfig { cases: wanted.unwrap_or(cases), ..ProptestConfig::default() }
}

/// A store on a simulated disk.
fn open_on(disk: &Disk) -> super::Result<Store> {
    let mut options = Options::new("/nowhere/simulated.redb");
    options.cache_bytes = 1 << 20;
    Store::open_with(options, disk.opener())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Twelve keys of two resources in two namespaces, so that lists and watches have neighbours to confuse.
fn key(number: u64) -> Key {
    let resource = ["configmaps.", "configmaps.example.com"][(number % 2) as usize];
    let namespace = ["a", "a-b"][(number / 2 % 2) as usize];
    Key::new(resource, namespace, &format!("n{}", number / 4 % 3))
}

fn prefixes() -> Vec<Prefix> {
    vec![
        Prefix::everything(),
        Prefix::resource("configmaps."),
        Prefix::namespace("configmaps.", "a"),
        Prefix::namespace("configmaps.example.com", "a-b"),
        Prefix::exact(&key(3)),
        Prefix::resource("secrets."),
    ]
}

fn object(key: &Key, content: u64, owners: &[u64]) -> Value {
    let references: Vec<_> = owners.iter().map(|o| json!({ "uid": format!("owner-{o}") })).collect();
    let mut object = json!({ "metadata": { "name": key.name() }, "data": { "content": content } });
    if !references.is_empty() {
        object["metadata"]["ownerReferences"] = references.into();
    }
    object
}

fn put(key: &Key, expect: Expect, object: Value) -> Write {
    Write { key: key.clone(), expect, action: Action::Put(object), previous: None }
}
