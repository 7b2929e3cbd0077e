//! Which of a thread's sessions may start their next transaction, and when. Pure: times are parameters, on
//! the running clock of the session's arm.
//!
//! ```text
//! sleeping ─time elapsed→ waiting ─due→ (runs) ─ended→ waiting, or sleeping for its think time
//!                            └─client waits for a partner→ blocked ─partner's transaction ended→ waiting
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use crate::clock::Nanos;
use crate::schedule::{Due, Schedule};

/// Clients that share a schedule. Closed loops and shared rates have one group per thread, role and arm;
/// roles with a rate per client have one per client.
pub struct Group {
    /// Its arm.
    pub arm: usize,
    /// Its schedule.
    pub schedule: Schedule,
    /// Sessions ready to start, in the order in which they became idle.
    pub waiting: VecDeque<usize>,
    clients: usize,
    wake: Option<Nanos>,
}

impl Group {
    /// Creates a group of this many sessions.
    pub fn new(arm: usize, schedule: Schedule, clients: usize) -> Self {
        Self { arm, schedule, waiting: VecDeque::new(), clients, wake: None }
    }
}

/// The sessions of a thread, by index.
pub struct SessionQueue {
    groups: Vec<Group>,
    group_of: Vec<usize>,
    is_blocked: Vec<bool>,
    /// By session, the next one of its ring: sessions that can block each other form a ring.
    next_partner: Vec<usize>,
    /// By session, the consumed arrival of a session that was blocked.
    held: Vec<Option<Nanos>>,
    sleeping: Vec<BinaryHeap<Reverse<(Nanos, usize)>>>, // by arm
}

impl SessionQueue {
    /// Creates a queue for `arms` arms, with no session waiting. By session, `group_of` is its group, and
    /// `clients` its arm and its client's index.
    pub fn new(groups: Vec<Group>, group_of: Vec<usize>, clients: &[(usize, usize)], arms: usize) -> Self {
        Self {
            groups,
            held: vec![None; group_of.len()],
            is_blocked: vec![false; group_of.len()],
            group_of,
            next_partner: rings(clients),
            sleeping: std::iter::repeat_with(BinaryHeap::new).take(arms).collect(),
        }
    }

    /// Queues a session for its next transaction.
    pub fn push(&mut self, session: usize) {
        self.groups[self.group_of[session]].waiting.push_back(session);
    }

    /// Queues a session at this time.
    pub fn push_at(&mut self, session: usize, at: Nanos) {
        let arm = self.groups[self.group_of[session]].arm;
        self.sleeping[arm].push(Reverse((at, session)));
    }

    /// Blocks a session until a partner's transaction ends; its arrival stays consumed.
    pub fn block(&mut self, session: usize, intended: Nanos) {
        self.held[session] = Some(intended);
        self.is_blocked[session] = true;
    }

    /// Unblocks the sessions that may have waited for this one: same arm, same client index.
    pub fn unblock_partners(&mut self, session: usize) {
        let mut partner = self.next_partner[session];
        while partner != session {
            if std::mem::take(&mut self.is_blocked[partner]) {
                self.push(partner);
            }
            partner = self.next_partner[partner];
        }
    }

    /// Whether a session is blocked.
    pub fn is_blocked(&self, session: usize) -> bool {
        self.is_blocked[session]
    }

    /// Removes a session from all queues.
    pub fn remove(&mut self, session: usize) {
        let group = &mut self.groups[self.group_of[session]];
        group.waiting.retain(|waiting| *waiting != session);
        self.sleeping[group.arm].retain(|Reverse((_, sleeping))| *sleeping != session);
        self.is_blocked[session] = false;
    }

    /// Takes the next session of an arm to start now, with its intended start.
    pub fn next_due(&mut self, arm: usize, now: Nanos) -> Option<(usize, Nanos)> {
        while let Some(Reverse((_, session))) = self.sleeping[arm].peek().copied().filter(|it| it.0.0 <= now)
        {
            self.sleeping[arm].pop();
            self.push(session);
        }
        let held = &mut self.held;
        self.groups.iter_mut().filter(|group| group.arm == arm).find_map(|group| group.next_due(now, held))
    }

    /// The next time at which a session of an arm may become due. Call it when none is due now.
    pub fn next_wake(&self, arm: usize) -> Option<Nanos> {
        let waiting = self.groups.iter().filter(|group| group.arm == arm && !group.waiting.is_empty());
        let sleeper = self.sleeping[arm].peek().map(|Reverse((at, _))| *at);
        waiting.filter_map(|group| group.wake).chain(sleeper).min()
    }

    /// Changes the rates of open loops; `now` holds the arms' running clocks.
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
            Some(intended) if self.schedule.is_open() => intended,
            // Only its place in the burst was kept: waiting for a partner is not latency of the server.
            Some(_) => now,
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

/// Links the sessions of equal clients into rings.
fn rings(clients: &[(usize, usize)]) -> Vec<usize> {
    let mut next: Vec<usize> = (0..clients.len()).collect();
    let mut last = HashMap::new();
    for (session, client) in clients.iter().enumerate() {
        if let Some(previous) = last.insert(*client, session) {
            next.swap(previous, session);
        }
    }
    next
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

    fn closed() -> SessionQueue {
        let groups = vec![group(0, Pace::Closed), group(1, Pace::Closed)];
        SessionQueue::new(groups, vec![0, 0, 1], &[(0, 0), (0, 1), (1, 0)], 2)
    }

    /// Two sessions: client 0 of two roles in one arm, each with its own schedule.
    fn partners(pace: Pace) -> SessionQueue {
        SessionQueue::new(vec![group(0, pace), group(0, pace)], vec![0, 1], &[(0, 0), (0, 0)], 1)
    }

    #[test]
    fn sessions_start_in_the_order_in_which_they_became_idle_and_only_those_of_the_arm() {
        let mut queue = closed();
        for session in [1, 0, 2] {
            queue.push(session);
        }
        assert_eq!(queue.next_due(0, 5), Some((1, 5)));
        assert_eq!(queue.next_due(0, 6), Some((0, 6)));
        assert_eq!(queue.next_due(0, 7), None);
        assert_eq!(queue.next_due(1, 8), Some((2, 8)));
    }

    #[test]
    fn a_sleeper_waits_until_its_time_and_names_it() {
        let mut queue = closed();
        queue.push_at(0, 100);
        assert_eq!((queue.next_due(0, 99), queue.next_wake(0)), (None, Some(100)));
        assert_eq!(queue.next_due(0, 100), Some((0, 100)));
    }

    #[test]
    fn a_blocked_session_of_an_open_loop_keeps_its_arrival() {
        let mut queue = partners(Pace::Open { rate: 1.0, arrivals: Arrivals::Uniform });
        queue.push(0);
        let (session, intended) = queue.next_due(0, SECOND).unwrap();
        queue.block(session, intended);
        assert!(queue.is_blocked(0) && queue.next_due(0, 9 * SECOND).is_none());
        queue.unblock_partners(1);
        assert_eq!(queue.next_due(0, 9 * SECOND), Some((0, intended)));
    }

    #[test]
    fn a_blocked_session_of_a_closed_loop_starts_when_it_can() {
        let mut queue = partners(Pace::Closed);
        queue.push(0);
        assert_eq!(queue.next_due(0, 5), Some((0, 5)));
        queue.block(0, 5);
        queue.unblock_partners(1);
        assert_eq!(queue.next_due(0, 9), Some((0, 9)));
    }

    #[test]
    fn a_blocked_session_of_a_burst_starts_when_it_can_and_its_place_stays_taken() {
        let mut queue = partners(Pace::Burst { burst: 1 });
        queue.push(0);
        assert_eq!(queue.next_due(0, 5), Some((0, 5)));
        queue.block(0, 5);
        queue.unblock_partners(1);
        assert_eq!(queue.next_due(0, 9), Some((0, 9)));
        queue.push(0);
        assert_eq!((queue.next_due(0, 10), queue.next_wake(0)), (None, Some(SECOND + 5)));
    }

    #[test]
    fn only_sessions_of_the_same_arm_and_client_try_again() {
        let clients = [(0, 0), (0, 1), (1, 0), (0, 0), (0, 1), (0, 0)];
        let groups = vec![group(0, Pace::Closed), group(1, Pace::Closed)];
        let mut queue = SessionQueue::new(groups, vec![0, 0, 1, 0, 0, 0], &clients, 2);
        for session in 0..5 {
            queue.block(session, 1);
        }
        queue.unblock_partners(5);
        let blocked: Vec<usize> = (0..6).filter(|session| queue.is_blocked(*session)).collect();
        assert_eq!(blocked, [1, 2, 4]);
        assert_eq!((queue.next_due(0, 2), queue.next_due(0, 3)), (Some((0, 2)), Some((3, 3))));
        assert_eq!((queue.next_due(0, 4), queue.next_due(1, 4)), (None, None));
    }

    #[test]
    fn what_is_removed_does_not_start() {
        let mut queue = closed();
        queue.push(0);
        queue.push_at(1, 3);
        queue.remove(0);
        queue.remove(1);
        assert_eq!(queue.next_due(0, 10), None);
    }
}
