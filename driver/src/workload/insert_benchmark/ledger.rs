//! The shared state of one table's clients: the progress of inserts and deletes, and the estimated position
//! of the oldest row.
//!
//! In the reference, a process creates one delete statement for every insert statement and puts them into two
//! queues of eight entries each. Neither side gets more than eight statements ahead of the other, and both
//! proceed at the same rate. Here, counters replace the queues; `Window` is the maximum difference between
//! them.
//!
//! The counters count committed statements, so the next statement makes up for a failed one. A client has at
//! most one statement in progress, which its own rule includes: the numbers of *sent* statements do not
//! differ by more than the window either.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use crate::workload::Next;

/// The size of each queue in the reference.
pub const QUEUE_DEPTH: u64 = 8;

/// Number of deletes after which the smallest key is read again. The reference's `--resync_get_min=1000` is
/// the number of rounds between two reads, so it reads in every 1001st (counted by running it).
const DELETES_PER_RESYNC: u64 = 1001;

/// How far deletes may get ahead of inserts. Inserts may always be `QUEUE_DEPTH` ahead of deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// No deletes.
    InsertsOnly,
    /// `QUEUE_DEPTH`, as for inserts. For faithful mode, and for open loops, in which neither side should
    /// wait for the other while both keep to their schedules.
    Even,
    /// Not at all: a delete is due after its insert was committed.
    DeletesFollow,
}

impl Window {
    fn deletes_ahead(self) -> u64 {
        if self == Self::Even { QUEUE_DEPTH } else { 0 }
    }
}

/// The shared state of one table's clients in one step.
pub struct Ledger {
    window: Window,
    /// Number of insert statements in the step, and of delete statements if it has any. `None`: no limit.
    statements: Option<u64>,
    inserts: AtomicU64,
    deletes: AtomicU64,
    oldest: AtomicI64,
    needs_resync: AtomicBool,
}

impl Ledger {
    /// Begins a step.
    pub fn new(window: Window, statements: Option<u64>) -> Self {
        Self {
            window,
            statements,
            inserts: AtomicU64::new(0),
            deletes: AtomicU64::new(0),
            oldest: AtomicI64::new(0),
            needs_resync: AtomicBool::new(window != Window::InsertsOnly),
        }
    }

    /// Number of committed insert statements.
    pub fn inserts(&self) -> u64 {
        self.inserts.load(Ordering::Acquire)
    }

    /// Number of committed delete statements.
    pub fn deletes(&self) -> u64 {
        self.deletes.load(Ordering::Acquire)
    }

    /// Whether the step's inserts are complete, which ends the queries.
    pub fn has_all_inserts(&self) -> bool {
        self.statements == Some(self.inserts())
    }

    /// The estimated key of the oldest row; 0 before the first delete.
    pub fn oldest(&self) -> i64 {
        self.oldest.load(Ordering::Acquire)
    }

    /// Whether another insert may be sent.
    pub fn next_insert(&self) -> Next {
        let inserts = self.inserts();
        if self.statements == Some(inserts) {
            Next::Finished
        } else if self.window == Window::InsertsOnly || inserts < self.deletes() + QUEUE_DEPTH {
            Next::Ready
        } else {
            Next::Blocked
        }
    }

    /// Whether another delete may be sent.
    pub fn next_delete(&self) -> Next {
        let deletes = self.deletes();
        if self.statements == Some(deletes) {
            Next::Finished
        } else if self.needs_resync() || deletes >= self.inserts() + self.window.deletes_ahead() {
            Next::Blocked
        } else {
            Next::Ready
        }
    }

    /// Whether the smallest key should be read.
    pub fn next_resync(&self) -> Next {
        let done = if self.window == Window::InsertsOnly { self.inserts() } else { self.deletes() };
        if self.statements == Some(done) {
            Next::Finished
        } else if self.needs_resync() {
            Next::Ready
        } else {
            Next::Blocked
        }
    }

    /// Records a committed insert.
    pub fn insert_committed(&self) {
        self.inserts.fetch_add(1, Ordering::AcqRel);
    }

    /// Records a committed delete of `rows` rows: the next one begins that many keys further.
    pub fn delete_committed(&self, rows: u64) {
        let oldest = self.oldest().saturating_add_unsigned(rows);
        self.oldest.store(oldest, Ordering::Release);
        let deletes = self.deletes() + 1;
        // Set before the count is raised: the rows of a delete in between would be counted twice.
        if deletes.is_multiple_of(DELETES_PER_RESYNC) {
            self.needs_resync.store(true, Ordering::Release);
        }
        self.deletes.store(deletes, Ordering::Release);
    }

    /// Records the smallest key read; `None` if the table is empty.
    pub fn resynced(&self, smallest: Option<i64>) {
        self.oldest.store(smallest.unwrap_or(0), Ordering::Release);
        self.needs_resync.store(false, Ordering::Release);
    }

    fn needs_resync(&self) -> bool {
        self.needs_resync.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Three connections with one statement each; answers arrive in any order.
    struct Connections {
        ledger: Ledger,
        is_inserting: bool,
        is_deleting: bool,
        sent: (u64, u64),
    }

    impl Connections {
        fn new(window: Window, statements: Option<u64>) -> Self {
            let ledger = Ledger::new(window, statements);
            Self { ledger, is_inserting: false, is_deleting: false, sent: (0, 0) }
        }

        /// The next event on one of the connections: sends a statement if possible, or answers it.
        fn step(&mut self, event: u8) {
            match event % 4 {
                0 if self.is_inserting => {
                    self.ledger.insert_committed();
                    self.is_inserting = false;
                }
                0 if self.ledger.next_insert() == Next::Ready => {
                    self.sent.0 += 1;
                    self.is_inserting = true;
                }
                1 if self.is_deleting => {
                    self.ledger.delete_committed(50);
                    self.is_deleting = false;
                }
                1 if self.ledger.next_delete() == Next::Ready => {
                    self.sent.1 += 1;
                    self.is_deleting = true;
                }
                2 if self.ledger.next_resync() == Next::Ready => self.ledger.resynced(Some(7)),
                // A statement fails: it was sent, but does not count.
                3 if self.is_inserting => {
                    self.sent.0 -= 1;
                    self.is_inserting = false;
                }
                _ => {}
            }
        }

        fn is_stuck(&self) -> bool {
            let nexts = [self.ledger.next_insert(), self.ledger.next_delete(), self.ledger.next_resync()];
            !self.is_inserting
                && !self.is_deleting
                && !nexts.contains(&Next::Ready)
                && nexts != [Next::Finished; 3]
        }
    }

    proptest! {
        #[test]
        fn inserts_and_deletes_are_never_more_than_eight_apart(events in prop::collection::vec(0u8..4, 1..600)) {
            let mut connections = Connections::new(Window::Even, None);
            for event in events {
                connections.step(event);
                prop_assert!(connections.ledger.inserts().abs_diff(connections.ledger.deletes()) <= 8);
                prop_assert!(connections.sent.0.abs_diff(connections.sent.1) <= 8);
            }
        }

        #[test]
        fn deletes_that_follow_are_never_ahead(events in prop::collection::vec(0u8..4, 1..600)) {
            let mut connections = Connections::new(Window::DeletesFollow, None);
            for event in events {
                connections.step(event);
                prop_assert!(connections.sent.1 <= connections.ledger.inserts());
                prop_assert!(connections.sent.0 <= connections.ledger.deletes() + 8);
            }
        }

        #[test]
        fn no_client_waits_forever(
            events in prop::collection::vec(0u8..4, 1..600),
            window in prop::sample::select(vec![Window::Even, Window::DeletesFollow]),
            statements in 1u64..100,
        ) {
            let mut connections = Connections::new(window, Some(statements));
            for event in events {
                connections.step(event);
                prop_assert!(!connections.is_stuck());
            }
            for event in (0..3).cycle().take(1000) {
                connections.step(event);
            }
            prop_assert_eq!(connections.ledger.next_insert(), Next::Finished);
            prop_assert_eq!(connections.ledger.next_resync(), Next::Finished);
            prop_assert_eq!(connections.ledger.inserts(), statements);
            prop_assert_eq!(connections.ledger.deletes(), statements);
        }
    }

    #[test]
    fn inserts_wait_for_deletes_after_eight_and_go_on_one_by_one() {
        let ledger = Ledger::new(Window::DeletesFollow, None);
        ledger.resynced(None);
        for _ in 0..8 {
            assert_eq!(ledger.next_insert(), Next::Ready);
            ledger.insert_committed();
        }
        assert_eq!(ledger.next_insert(), Next::Blocked);
        ledger.delete_committed(50);
        assert_eq!(ledger.next_insert(), Next::Ready);
    }

    #[test]
    fn deletes_of_an_even_window_wait_for_inserts_after_eight() {
        let ledger = Ledger::new(Window::Even, None);
        ledger.resynced(None);
        for _ in 0..8 {
            assert_eq!(ledger.next_delete(), Next::Ready);
            ledger.delete_committed(50);
        }
        assert_eq!(ledger.next_delete(), Next::Blocked);
        ledger.insert_committed();
        assert_eq!(ledger.next_delete(), Next::Ready);
    }

    #[test]
    fn a_delete_is_due_when_its_insert_was_committed() {
        let ledger = Ledger::new(Window::DeletesFollow, None);
        ledger.resynced(Some(1));
        assert_eq!(ledger.next_delete(), Next::Blocked);
        ledger.insert_committed();
        assert_eq!(ledger.next_delete(), Next::Ready);
        ledger.delete_committed(50);
        assert_eq!(ledger.next_delete(), Next::Blocked);
    }

    #[test]
    fn without_deletes_inserts_never_wait() {
        let ledger = Ledger::new(Window::InsertsOnly, Some(100));
        for _ in 0..100 {
            assert_eq!((ledger.next_insert(), ledger.next_resync()), (Next::Ready, Next::Blocked));
            ledger.insert_committed();
        }
        assert_eq!((ledger.next_insert(), ledger.next_resync()), (Next::Finished, Next::Finished));
        assert!(ledger.has_all_inserts());
    }

    #[test]
    fn the_guess_is_read_first_moves_with_deletes_and_is_read_again_in_the_1001st_round_after() {
        let ledger = Ledger::new(Window::Even, None);
        assert_eq!((ledger.next_delete(), ledger.next_resync()), (Next::Blocked, Next::Ready));
        ledger.resynced(Some(4_000_000_000));
        assert_eq!((ledger.oldest(), ledger.next_resync()), (4_000_000_000, Next::Blocked));
        for _ in 0..1001 {
            assert_eq!(ledger.next_delete(), Next::Ready);
            ledger.insert_committed();
            ledger.delete_committed(50);
        }
        assert_eq!(ledger.oldest(), 4_000_050_050);
        assert_eq!((ledger.next_delete(), ledger.next_resync()), (Next::Blocked, Next::Ready));
        ledger.resynced(Some(4_000_051_000)); // there was a gap of a thousand
        assert_eq!((ledger.oldest(), ledger.next_delete()), (4_000_051_000, Next::Ready));
    }

    #[test]
    fn the_guess_for_an_empty_table_is_zero() {
        let ledger = Ledger::new(Window::Even, None);
        ledger.resynced(None);
        assert_eq!((ledger.oldest(), ledger.next_delete()), (0, Next::Ready));
    }
}
