//! The connections of one manager: one for each instance manager, however many volumes it has.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::connection::{Connection, Target};

#[derive(Default)]
pub struct Pool(Mutex<HashMap<Target, Arc<Connection>>>);

impl Pool {
    /// The same connection for the same target, for as long as the pool lives.
    pub fn get(&self, target: &Target) -> Arc<Connection> {
        let mut connections = self.0.lock();
        connections.entry(target.clone()).or_insert_with(|| Arc::new(Connection::new(target.clone()))).clone()
    }

    /// For an instance manager that is gone for good.
    pub fn forget(&self, target: &Target) {
        self.0.lock().remove(target);
    }
}
