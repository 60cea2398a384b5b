//! Limits: how many requests and bytes a second may pass. A bucket of a tenth of a second lets short bursts through
//! and keeps the average.

#[derive(Debug, Default)]
pub struct Bucket {
    /// Per second; zero: no limit.
    rate: u64,
    level: f64,
    updated: u64,
}

impl Bucket {
    pub fn set_rate(&mut self, rate: u64, now: u64) {
        *self = Self { rate, level: Self::depth(rate), updated: now };
    }

    pub const fn rate(&self) -> u64 {
        self.rate
    }

    fn depth(rate: u64) -> f64 {
        (rate as f64 / 10.0).max(1.0)
    }

    fn refill(&mut self, now: u64) {
        let passed = now.saturating_sub(self.updated) as f64 / 1e6;
        self.updated = now;
        self.level = (self.level + passed * self.rate as f64).min(Self::depth(self.rate));
    }

    /// Whether something may pass now. What passes may overdraw, so that a request larger than the bucket passes too
    /// and those behind it pay.
    pub fn open(&mut self, now: u64) -> bool {
        if self.rate == 0 {
            return true;
        }
        self.refill(now);
        self.level > 0.0
    }

    pub fn take(&mut self, amount: u64) {
        if self.rate > 0 {
            self.level -= amount as f64;
        }
    }

    /// When to ask again.
    pub fn opens_at(&self) -> u64 {
        if self.rate == 0 || self.level > 0.0 {
            return self.updated;
        }
        self.updated + (-self.level / self.rate as f64 * 1e6) as u64 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_is_kept_whatever_the_sizes() {
        for amount in [1, 7, 500, 5000] {
            let mut bucket = Bucket::default();
            bucket.set_rate(1000, 0);
            let (mut now, mut passed) = (0, 0);
            while now < 10_000_000 {
                if bucket.open(now) {
                    bucket.take(amount);
                    passed += amount;
                } else {
                    now = bucket.opens_at();
                }
            }
            assert!((9_000..=10_200 + amount).contains(&passed), "{amount} at a time: {passed}");
        }
    }

    #[test]
    fn no_limit_lets_everything_pass() {
        let mut bucket = Bucket::default();
        assert!(bucket.open(0));
        bucket.take(u64::MAX);
        assert!(bucket.open(0));
    }
}
