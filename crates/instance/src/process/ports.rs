//! Which ports belong to which process. A port that was given back is the last to be given out again, because others
//! may still believe that somebody else is there.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::Refusal;

#[derive(Clone, Debug)]
pub struct Ports(Arc<Mutex<Pool>>);

#[derive(Debug)]
struct Pool {
    range: RangeInclusive<u16>,
    taken: BTreeSet<u16>,
    /// Where the search for the next ones begins.
    next: u16,
}

/// Neighbouring ports, given back when this is dropped.
#[derive(Debug)]
pub struct Reservation {
    start: u16,
    count: u16,
    pool: Ports,
}

impl Ports {
    pub fn new(range: RangeInclusive<u16>) -> Self {
        let next = *range.start();
        Self(Arc::new(Mutex::new(Pool { range, taken: BTreeSet::new(), next })))
    }

    /// As many neighbouring ports as asked for; none at all is fine, too.
    pub fn reserve(&self, count: u16) -> Result<Reservation, Refusal> {
        self.reserve_where(count, is_free)
    }

    fn reserve_where(&self, count: u16, is_free: impl Fn(u16) -> bool) -> Result<Reservation, Refusal> {
        let mut pool = self.0.lock();
        let start = pool.find(count, is_free).ok_or_else(|| {
            let (first, last) = (pool.range.start(), pool.range.end());
            Refusal::Exhausted(format!(
                "no {count} neighbouring ports are free between {first} and {last}; delete processes that are not \
                 needed, or give --port-range more"
            ))
        })?;
        pool.taken.extend(start..start + count);
        if count > 0 {
            pool.next = start.saturating_add(count);
        }
        Ok(Reservation { start, count, pool: self.clone() })
    }

    /// What a process that runs already has.
    pub fn claim(&self, start: u16, count: u16) -> Reservation {
        self.0.lock().taken.extend(start..start.saturating_add(count));
        Reservation { start, count, pool: self.clone() }
    }
}

impl Pool {
    fn find(&self, count: u16, is_free: impl Fn(u16) -> bool) -> Option<u16> {
        if count == 0 {
            return Some(0);
        }
        let (first, last) = (*self.range.start(), *self.range.end());
        let highest = last.checked_sub(count - 1).filter(|highest| *highest >= first)?;
        let from = self.next.clamp(first, highest);
        let fits = |start: &u16| {
            (*start..=*start + (count - 1)).all(|port| !self.taken.contains(&port) && is_free(port))
        };
        (from..=highest).chain(first..from).find(fits)
    }
}

impl Reservation {
    pub fn start(&self) -> u16 {
        self.start
    }

    pub fn count(&self) -> u16 {
        self.count
    }

    /// The last one; 0 when there is none.
    pub fn end(&self) -> u16 {
        self.start + self.count.saturating_sub(1)
    }

    pub fn contains(&self, port: u16) -> bool {
        self.count > 0 && (self.start..=self.end()).contains(&port)
    }

    pub fn iter(&self) -> impl Iterator<Item = u16> {
        self.start..self.start + self.count
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut pool = self.pool.0.lock();
        for port in self.start..self.start + self.count {
            pool.taken.remove(&port);
        }
    }
}

/// Somebody who is none of ours may have it.
fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reserve(ports: &Ports, count: u16) -> Option<Reservation> {
        ports.reserve_where(count, |_| true).ok()
    }

    #[test]
    fn the_last_port_is_given_out_and_no_more() {
        let ports = Ports::new(10..=12);
        let (two, one) = (reserve(&ports, 2).unwrap(), reserve(&ports, 1).unwrap());
        assert_eq!((two.start(), two.end(), one.start()), (10, 11, 12));
        let refused = ports.reserve(1).unwrap_err().to_string();
        assert!(refused.contains("between 10 and 12") && refused.contains("--port-range"), "{refused}");
        drop(two);
        assert!(reserve(&ports, 3).is_none());
        assert_eq!(reserve(&ports, 2).unwrap().start(), 10);
        assert!(reserve(&ports, u16::MAX).is_none());
    }

    #[test]
    fn a_port_given_back_is_not_given_out_at_once() {
        let ports = Ports::new(10..=20);
        drop(reserve(&ports, 1));
        assert_eq!(reserve(&ports, 1).unwrap().start(), 11);
    }

    #[test]
    fn what_others_use_is_stepped_over() {
        let ports = Ports::new(10..=20);
        assert_eq!(ports.reserve_where(3, |port| port != 11).unwrap().start(), 12);
    }

    #[test]
    fn none_at_all_is_none() {
        let none = reserve(&Ports::new(10..=20), 0).unwrap();
        assert_eq!((none.start(), none.end(), none.contains(0), none.iter().count()), (0, 0, false, 0));
    }

    proptest! {
        /// Against the simplest model: no two that are held share a port, and a refusal means there was no room.
        #[test]
        fn nobody_shares_a_port(steps in prop::collection::vec((1u16..6, any::<bool>(), 0usize..8), 1..60)) {
            let ports = Ports::new(100..=119);
            let mut held: Vec<Reservation> = Vec::new();
            for (count, give_back, which) in steps {
                if give_back && !held.is_empty() {
                    held.remove(which % held.len());
                    continue;
                }
                let taken: BTreeSet<u16> = held.iter().flat_map(Reservation::iter).collect();
                let room = (100..=120 - count).any(|start| (start..start + count).all(|port| !taken.contains(&port)));
                match reserve(&ports, count) {
                    Some(got) => {
                        prop_assert!(got.iter().all(|port| !taken.contains(&port) && (100..=119).contains(&port)));
                        held.push(got);
                    }
                    None => prop_assert!(!room),
                }
            }
        }
    }
}
