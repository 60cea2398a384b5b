//! How the guest writes. One that flushes after every few writes, as databases do with their logs, is best served by
//! sending each write to the disk at once: by the time of the flush it is there. For everybody else the page cache
//! gathers writes as long as it can.

/// So many writes before a flush are few.
const FEW: u32 = 4;

#[derive(Default)]
pub struct Habit {
    writes: u32,
    often: bool,
}

impl Habit {
    /// Whether a flush is likely to follow.
    pub fn written(&mut self) -> bool {
        self.writes = self.writes.saturating_add(1);
        if self.writes > FEW {
            self.often = false;
        }
        self.often
    }

    pub fn flushed(&mut self) {
        self.often = (1..=FEW).contains(&self.writes);
        self.writes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_flushes_each_write_is_known_after_the_first() {
        let mut habit = Habit::default();
        assert!(!habit.written());
        habit.flushed();
        assert!(habit.written());
        habit.flushed();
        assert!(habit.written());
    }

    #[test]
    fn a_guest_that_writes_much_is_left_to_the_page_cache() {
        let mut habit = Habit::default();
        habit.written();
        habit.flushed();
        let ahead = (0..100).filter(|_| habit.written()).count();
        assert_eq!(ahead, FEW as usize);
        habit.flushed();
        assert!(!habit.written());
    }

    #[test]
    fn flushes_without_writes_say_nothing() {
        let mut habit = Habit::default();
        habit.flushed();
        assert!(!habit.written());
    }
}
