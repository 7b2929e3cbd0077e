//! Messages between the coordinator and its worker threads.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};

use crate::clock::Nanos;
use crate::error::{Error, Result};
use crate::record::Counts;
use crate::transport::Transport;
use crate::workload::StatementId;

/// A command from the coordinator to a thread.
pub enum Command {
    /// Begin an arm's turn.
    Turn(Turn),
    /// End the turn at this instant.
    EndAt(Nanos),
    /// Change the rate of open loops.
    Rate {
        /// Transactions per second and client.
        per_client: f64,
        /// The arms' running clocks; for the running arm, at the start of its turn.
        running: Vec<Nanos>,
    },
    /// A lost session was reconnected, or cannot be.
    Reconnected(Reconnected),
    /// Exit.
    Quit,
}

/// A report from a thread to the coordinator.
pub enum Report {
    /// The event loop runs; holds the kernel's thread ID.
    Started(libc::pid_t),
    /// All transactions of the turn with this number have ended.
    Drained(u64),
    /// The run has failed.
    Failed(Error),
}

/// A session without a connection.
pub struct Lost {
    /// Its index in its thread.
    pub session: usize,
    /// Its arm.
    pub arm: usize,
    /// Its role.
    pub role: usize,
    /// Its index within the role.
    pub client: usize,
    /// The role's statements that its client uses.
    pub statements: Range<StatementId>,
}

/// The answer to a `Lost`.
pub struct Reconnected {
    /// Its index in its thread.
    pub session: usize,
    /// The new connection, or the error.
    pub transport: Result<Transport>,
}

/// A period in which one arm runs.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// Sequence number.
    pub number: u64,
    /// The arm.
    pub arm: usize,
    /// When it begins, on the driver's clock.
    pub start: Nanos,
    /// When no more transactions are started.
    pub end: Nanos,
    /// The arm's running clock at the start.
    pub base: Nanos,
}

impl Turn {
    /// The arm's running clock at `now`.
    pub fn running(&self, now: Nanos) -> Nanos {
        self.base.saturating_add(now.saturating_sub(self.start))
    }

    /// The driver's clock when the arm's running clock shows `running`; saturates at the largest value.
    pub fn clock(&self, running: Nanos) -> Nanos {
        self.start.saturating_add(running.saturating_sub(self.base))
    }
}

/// The counts of one thread, by arm and role; the coordinator takes them periodically.
pub type SharedCounts = Arc<Mutex<Vec<Vec<Counts>>>>;

/// A thread's channels to the other threads.
pub struct Channels {
    /// From the coordinator.
    pub commands: Receiver<Command>,
    /// To the coordinator.
    pub reports: Sender<Report>,
    /// To the reconnecting thread.
    pub lost: Sender<Lost>,
    /// Transactions given up by all threads.
    pub given_up: Arc<AtomicU64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(start: Nanos, base: Nanos) -> Turn {
        Turn { number: 1, arm: 0, start, end: Nanos::MAX, base }
    }

    #[test]
    fn the_running_clock_goes_on_where_the_last_turn_ended() {
        let turn = turn(1000, 70);
        assert_eq!((turn.running(1030), turn.running(900)), (100, 70));
        assert_eq!((turn.clock(100), turn.clock(60)), (1030, 1000));
    }

    #[test]
    fn what_is_due_beyond_the_end_of_time_is_due_at_its_end() {
        assert_eq!(turn(1000, 0).clock(Nanos::MAX), Nanos::MAX);
        assert_eq!(turn(0, 1000).running(Nanos::MAX), Nanos::MAX);
    }
}
