//! The driver's only clock: monotonic, with one reading of the wall clock at start as its origin.
//!
//! Readings are wall-clock nanoseconds that never step, so that they can be compared with other processes'
//! and a correction of the wall clock in the middle of a run changes nothing.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since the epoch.
pub type Nanos = u64;

/// One second.
pub const SECOND: Nanos = 1_000_000_000;

/// A clock that is shared by copying.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
    origin_ns: Nanos,
}

impl Clock {
    /// Reads the wall clock once.
    pub fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { origin: Instant::now(), origin_ns: since_epoch.as_nanos() as Nanos }
    }

    /// The time now.
    pub fn now(&self) -> Nanos {
        self.origin_ns + self.origin.elapsed().as_nanos() as Nanos
    }
}

/// Converts seconds, as a user gave them, to nanoseconds; negative or absurd values end at the bounds.
pub fn nanos(seconds: f64) -> Nanos {
    (seconds.clamp(0.0, 1e9) * 1e9) as Nanos
}

/// How long from `now` until `then`; nothing if that has passed.
pub fn until(now: Nanos, then: Nanos) -> Duration {
    Duration::from_nanos(then.saturating_sub(now))
}
