//! Which of a thread's sessions may start their next transaction, and when. Pure: times are numbers, on the
//! running clock of the session's arm.
//!
//! ```text
//! sleeping ─its time has come→ waiting ─due→ (runs) ─ended→ waiting, or sleeping for its think time
//!                                  └ its client waits for another one→ blocked ─another has ended→ waiting
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::clock::Nanos;
use crate::schedule::{Due, Schedule};

/// Clients that share a schedule. Closed loops and shared rates have one group per thread, role and arm; roles
/// with a rate per client have one per client.
pub struct Group {
    /// Whose.
    pub arm: usize,
    /// When its transactions are due.
    pub schedule: Schedule,
    /// Sessions that could start, in the order in which they became idle.
    pub waiting: VecDeque<usize>,
    clients: usize,
    wake: Option<Nanos>,
}

impl Group {
    /// Makes a group for this many sessions.
    pub fn new(arm: usize, schedule: Schedule, clients: usize) -> Self {
        Self { arm, schedule, waiting: VecDeque::new(), clients, wake: None }
    }
}

/// The sessions of a thread by their numbers.
pub struct Roster {
    groups: Vec<Group>,
    group_of: Vec<usize>,
    blocked: Vec<usize>,
    /// An arrival that was taken, by session, but whose session could not start.
    held: Vec<Option<Nanos>>,
    sleeping: Vec<BinaryHeap<Reverse<(Nanos, usize)>>>, // by arm
}

impl Roster {
    /// Makes a roster of `arms` arms; `group_of` says which group each session belongs to. Nobody waits yet.
    pub fn new(groups: Vec<Group>, group_of: Vec<usize>, arms: usize) -> Self {
        Self {
            groups,
            held: vec![None; group_of.len()],
            group_of,
            blocked: Vec::new(),
            sleeping: std::iter::repeat_with(BinaryHeap::new).take(arms).collect(),
        }
    }

    /// Lets a session wait for its next transaction.
    pub fn enlist(&mut self, session: usize) {
        self.groups[self.group_of[session]].waiting.push_back(session);
    }

    /// Lets a session wait from this time on.
    pub fn enlist_at(&mut self, session: usize, at: Nanos) {
        let arm = self.groups[self.group_of[session]].arm;
        self.sleeping[arm].push(Reverse((at, session)));
    }

    /// Lets a session wait until another one has ended a transaction; its arrival is kept.
    pub fn block(&mut self, session: usize, intended: Nanos) {
        self.held[session] = Some(intended);
        self.blocked.push(session);
    }

    /// Lets all blocked sessions try again.
    pub fn unblock(&mut self) {
        for session in std::mem::take(&mut self.blocked) {
            self.enlist(session);
        }
    }

    /// Whether a session is blocked.
    pub fn is_blocked(&self, session: usize) -> bool {
        self.blocked.contains(&session)
    }

    /// Takes a session out, wherever it is.
    pub fn remove(&mut self, session: usize) {
        let group = &mut self.groups[self.group_of[session]];
        group.waiting.retain(|waiting| *waiting != session);
        self.sleeping[group.arm].retain(|Reverse((_, sleeping))| *sleeping != session);
        self.blocked.retain(|blocked| *blocked != session);
    }

    /// Takes the next session of an arm that is to start now, and the time that this was intended for.
    pub fn next_due(&mut self, arm: usize, now: Nanos) -> Option<(usize, Nanos)> {
        while let Some(Reverse((_, session))) = self.sleeping[arm].peek().copied().filter(|it| it.0.0 <= now)
        {
            self.sleeping[arm].pop();
            self.enlist(session);
        }
        let held = &mut self.held;
        self.groups.iter_mut().filter(|group| group.arm == arm).find_map(|group| group.next_due(now, held))
    }

    /// When a session of an arm may become due that is not now; to be asked when none is.
    pub fn next_wake(&self, arm: usize) -> Option<Nanos> {
        let waiting = self.groups.iter().filter(|group| group.arm == arm && !group.waiting.is_empty());
        let sleeper = self.sleeping[arm].peek().map(|Reverse((at, _))| *at);
        waiting.filter_map(|group| group.wake).chain(sleeper).min()
    }

    /// Changes the rates of open loops; `now` is by arm.
    pub fn change_rate(&mut self, now: &[Nanos], per_client: f64) {
        for group in &mut self.groups {
            group.schedule.change_rate(now[group.arm], per_client * group.clients as f64);
        }
    }
}

impl Group {
    fn next_due(&mut self, now: Nanos, held: &mut [Option<Nanos>]) -> Option<(usize, Nanos)> {
        self.wake = None;
        let session = *self.waiting.front()?;
        let intended = match held[session].take() {
            Some(intended) => intended,
            None => match self.schedule.due(now) {
                Due::Now(intended) => intended,
                Due::At(at) => {
                    self.wake = Some(at);
                    return None;
                }
            },
        };
        self.waiting.pop_front();
        Some((session, intended))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;
    use crate::random::Random;
    use crate::workload::{Arrivals, Pace};

    fn group(arm: usize, pace: Pace) -> Group {
        Group::new(arm, Schedule::new(pace, Random::stream(1, "test", 0)), 1)
    }

    fn closed() -> Roster {
        Roster::new(vec![group(0, Pace::Closed), group(1, Pace::Closed)], vec![0, 0, 1], 2)
    }

    #[test]
    fn sessions_start_in_the_order_in_which_they_became_idle_and_only_those_of_the_arm() {
        let mut roster = closed();
        for session in [1, 0, 2] {
            roster.enlist(session);
        }
        assert_eq!(roster.next_due(0, 5), Some((1, 5)));
        assert_eq!(roster.next_due(0, 6), Some((0, 6)));
        assert_eq!(roster.next_due(0, 7), None);
        assert_eq!(roster.next_due(1, 8), Some((2, 8)));
    }

    #[test]
    fn a_sleeper_waits_until_its_time_and_names_it() {
        let mut roster = closed();
        roster.enlist_at(0, 100);
        assert_eq!((roster.next_due(0, 99), roster.next_wake(0)), (None, Some(100)));
        assert_eq!(roster.next_due(0, 100), Some((0, 100)));
    }

    #[test]
    fn a_blocked_session_keeps_its_arrival() {
        let pace = Pace::Open { rate: 1.0, arrivals: Arrivals::Uniform };
        let mut roster = Roster::new(vec![group(0, pace)], vec![0], 1);
        roster.enlist(0);
        let (session, intended) = roster.next_due(0, SECOND).unwrap();
        roster.block(session, intended);
        assert!(roster.is_blocked(0) && roster.next_due(0, 9 * SECOND).is_none());
        roster.unblock();
        assert_eq!(roster.next_due(0, 9 * SECOND), Some((0, intended)));
    }

    #[test]
    fn what_is_removed_does_not_start() {
        let mut roster = closed();
        roster.enlist(0);
        roster.enlist_at(1, 3);
        roster.remove(0);
        roster.remove(1);
        assert_eq!(roster.next_due(0, 10), None);
    }
}
