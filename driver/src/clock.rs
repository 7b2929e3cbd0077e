//! The driver's only clock: monotonic, set from the wall clock once at start.
//!
//! Readings are nanoseconds since the epoch and never step. They are comparable with those of other
//! processes, and a correction of the wall clock during a run has no effect.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since the epoch.
pub type Nanos = u64;

/// One second.
pub const SECOND: Nanos = 1_000_000_000;

/// The clock. Copies share its origin.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
    origin_ns: Nanos,
}

impl Clock {
    /// Starts the clock at the wall-clock time.
    pub fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { origin: Instant::now(), origin_ns: since_epoch.as_nanos() as Nanos }
    }

    /// The time now.
    pub fn now(&self) -> Nanos {
        self.origin_ns + self.origin.elapsed().as_nanos() as Nanos
    }
}

/// Converts seconds to nanoseconds, clamped to 0 to 1e9 seconds.
pub fn nanos(seconds: f64) -> Nanos {
    (seconds.clamp(0.0, 1e9) * 1e9) as Nanos
}

/// The time from `now` until `then`; zero if `then` has passed.
pub fn until(now: Nanos, then: Nanos) -> Duration {
    Duration::from_nanos(then.saturating_sub(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_go_on_from_the_beginning_whatever_the_wall_clock_shows_since() {
        // Simulates a wall clock set from 2001 to today right after the start.
        let begin = 1_000_000_000 * SECOND;
        let clock = Clock { origin: Instant::now(), origin_ns: begin };
        let first = clock.now();
        std::thread::sleep(Duration::from_millis(2));
        let second = clock.now();
        assert!(begin <= first && first + 2_000_000 <= second && second < begin + 3600 * SECOND);
    }
}
