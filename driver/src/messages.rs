//! What the coordinator and its threads tell each other.

use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};

use crate::clock::Nanos;
use crate::error::Error;
use crate::reconnect::{Lost, Reconnected};
use crate::record::Counts;

/// What the coordinator tells a thread.
pub enum Command {
    /// An arm has its turn.
    Turn(Turn),
    /// The turn ends at another instant than planned.
    EndAt(Nanos),
    /// Open loops go on at another rate.
    Rate {
        /// Transactions per second and client.
        per_client: f64,
        /// The running clocks of the arms that do not have their turn, and of the one that has when it began.
        running: Vec<Nanos>,
    },
    /// A lost session has a connection again, or will never have one.
    Reconnected(Reconnected),
    /// The thread ends.
    Quit,
}

/// What a thread tells the coordinator.
pub enum Report {
    /// Its event loop runs; the kernel's number of the thread.
    Started(libc::pid_t),
    /// No transaction of this turn is under way any more.
    Drained(u64),
    /// The run has failed.
    Failed(Error),
}

/// One arm's time to run.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// Counts turns.
    pub number: u64,
    /// Whose turn.
    pub arm: usize,
    /// When it begins, on the driver's clock.
    pub start: Nanos,
    /// When no more transactions are started.
    pub end: Nanos,
    /// The arm's running clock at the beginning.
    pub base: Nanos,
}

impl Turn {
    /// The arm's running clock.
    pub fn running(&self, now: Nanos) -> Nanos {
        self.base.saturating_add(now.saturating_sub(self.start))
    }

    /// The driver's clock when the arm's running clock shows `running`; the end of time if that is beyond it.
    pub fn clock(&self, running: Nanos) -> Nanos {
        self.start.saturating_add(running.saturating_sub(self.base))
    }
}

/// The counts of one thread, by arm and role; the coordinator takes them now and then.
pub type SharedCounts = Arc<Mutex<Vec<Vec<Counts>>>>;

/// How a thread reaches the others.
pub struct Channels {
    /// From the coordinator.
    pub commands: Receiver<Command>,
    /// To the coordinator.
    pub reports: Sender<Report>,
    /// To whoever connects again.
    pub lost: Sender<Lost>,
    /// How many transactions all threads have given up.
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
