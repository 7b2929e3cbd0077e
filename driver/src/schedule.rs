//! Schedules of transactions. Pure: times are parameters, on the running clock of the arm.
//!
//! The running clock of an arm stops during the turns of other arms. Rates therefore refer to the arm's own
//! running time, and latencies exclude the turns of others.

use std::collections::VecDeque;

use crate::clock::{Nanos, SECOND};
use crate::random::Random;
use crate::workload::{Arrivals, Pace};

/// If a second of the burst limiter took longer than this, the next one begins at once (the Insert
/// Benchmark's rule).
const LATE_BURST: Nanos = SECOND / 100 * 95;

/// When the next transaction is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Now; it was intended for this instant, now or in the past.
    Now(Nanos),
    /// Not before this instant.
    At(Nanos),
}

/// The arrivals of one client, or of several clients that share a schedule.
pub struct Schedule {
    pace: Pace,
    random: Random,
    next: f64,
    /// Changes of the rate after the next arrival: when, and the new rate.
    changes: VecDeque<(Nanos, f64)>,
    left_of_burst: u32,
    burst_began: Option<Nanos>,
    next_burst: Option<Nanos>,
}

impl Schedule {
    /// Creates a schedule whose clock starts at 0. Equal random streams give equal arrivals.
    pub fn new(pace: Pace, random: Random) -> Self {
        let mut schedule = Self {
            pace,
            random,
            next: 0.0,
            changes: VecDeque::new(),
            left_of_burst: 0,
            burst_began: None,
            next_burst: None,
        };
        if let Pace::Open { rate, arrivals } = pace {
            // Clients with uniform arrivals must not all arrive at the same instant.
            let phase = schedule.random.fraction();
            schedule.next = match arrivals {
                Arrivals::Uniform => phase * gap(rate),
                Arrivals::Poisson => schedule.draw_gap(rate, arrivals),
            };
        }
        schedule
    }

    /// Changes the rate from `now` on. Missed arrivals keep their times.
    pub fn change_rate(&mut self, now: Nanos, new_rate: f64) {
        if self.is_open() {
            self.changes.push_back((now, new_rate));
            self.apply_changes();
        }
    }

    /// Applies the changes before the next arrival, and rescales the remaining time until it.
    fn apply_changes(&mut self) {
        let Pace::Open { rate, .. } = &mut self.pace else { return };
        while let Some((at, new_rate)) =
            self.changes.front().copied().filter(|change| self.next > change.0 as f64)
        {
            self.next = at as f64 + (self.next - at as f64) * *rate / new_rate;
            *rate = new_rate;
            self.changes.pop_front();
        }
    }

    /// Whether transactions have intended start times.
    pub fn is_open(&self) -> bool {
        matches!(self.pace, Pace::Open { .. })
    }

    /// Whether a transaction is due. If so, its arrival is consumed.
    pub fn due(&mut self, now: Nanos) -> Due {
        match self.pace {
            Pace::Closed => Due::Now(now),
            Pace::Open { rate, arrivals } => {
                let intended = self.next as Nanos;
                if intended > now {
                    return Due::At(intended);
                }
                self.next += self.draw_gap(rate, arrivals);
                self.apply_changes();
                Due::Now(intended)
            }
            Pace::Burst { burst } => self.due_in_burst(now, burst),
        }
    }

    fn due_in_burst(&mut self, now: Nanos, burst: u32) -> Due {
        if self.left_of_burst == 0 {
            // Decided once, at the end of a burst: later calls in the same second must not count as late.
            let next = *self.next_burst.get_or_insert(match self.burst_began {
                Some(began) if now - began < LATE_BURST => began + SECOND,
                _ => now,
            });
            if now < next {
                return Due::At(next);
            }
            self.next_burst = None;
            // The reference reads the clock after its first statement, then after every burst.
            self.left_of_burst = if self.burst_began.is_none() { 1 } else { burst.max(1) };
            self.burst_began = Some(now);
        }
        self.left_of_burst -= 1;
        Due::Now(now)
    }

    fn draw_gap(&mut self, rate: f64, arrivals: Arrivals) -> f64 {
        match arrivals {
            Arrivals::Uniform => gap(rate),
            Arrivals::Poisson => -(1.0 - self.random.fraction()).ln() * gap(rate),
        }
    }
}

fn gap(rate: f64) -> f64 {
    SECOND as f64 / rate
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeded(seed: u64) -> Random {
        Random::stream(seed, "arrivals", 0)
    }

    fn arrivals_within(mut schedule: Schedule, seconds: u64) -> Vec<Nanos> {
        let mut found = Vec::new();
        while let Due::Now(intended) = schedule.due(seconds * SECOND) {
            found.push(intended);
        }
        found
    }

    #[test]
    fn a_closed_loop_is_always_due() {
        let mut schedule = Schedule::new(Pace::Closed, seeded(1));
        assert_eq!((schedule.due(5), schedule.due(9)), (Due::Now(5), Due::Now(9)));
    }

    #[test]
    fn uniform_arrivals_keep_their_rate_and_their_distance() {
        let pace = Pace::Open { rate: 100.0, arrivals: Arrivals::Uniform };
        let found = arrivals_within(Schedule::new(pace, seeded(1)), 10);
        assert!((999..=1001).contains(&found.len()), "{}", found.len());
        assert!(found.windows(2).all(|pair| (pair[1] - pair[0]).abs_diff(10_000_000) <= 1));
    }

    #[test]
    fn poisson_arrivals_have_the_mean_and_spread_of_an_exponential() {
        let pace = Pace::Open { rate: 1000.0, arrivals: Arrivals::Poisson };
        let found = arrivals_within(Schedule::new(pace, seeded(7)), 100);
        let gaps: Vec<f64> = found.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let above_mean = gaps.iter().filter(|gap| **gap > 1.0).count() as f64 / gaps.len() as f64;
        // 100 000 draws: the standard errors are 0.0032 and 0.0015; a share of exp(-1) exceeds the mean.
        assert!((mean - 1.0).abs() < 0.016, "{mean}");
        assert!((above_mean - (-1.0f64).exp()).abs() < 0.008, "{above_mean}");
    }

    #[test]
    fn a_missed_arrival_keeps_its_intended_time() {
        let pace = Pace::Open { rate: 10.0, arrivals: Arrivals::Uniform };
        let mut schedule = Schedule::new(pace, seeded(1));
        let Due::At(first) = schedule.due(0) else { panic!("the first arrival is not at 0") };
        assert_eq!(schedule.due(5 * SECOND), Due::Now(first));
        assert_eq!(schedule.due(5 * SECOND), Due::Now(first + SECOND / 10));
    }

    #[test]
    fn a_burst_is_followed_by_the_rest_of_its_second_and_the_first_is_a_single_transaction() {
        let mut schedule = Schedule::new(Pace::Burst { burst: 2 }, seeded(1));
        assert_eq!((schedule.due(100), schedule.due(200)), (Due::Now(100), Due::At(SECOND + 100)));
        let second = SECOND + 100;
        assert_eq!(
            (schedule.due(second), schedule.due(second + 9)),
            (Due::Now(second), Due::Now(second + 9))
        );
        assert_eq!(schedule.due(second + 10), Due::At(2 * SECOND + 100));
    }

    #[test]
    fn a_burst_in_time_is_followed_by_the_whole_rest_of_its_second_however_often_it_is_asked() {
        let mut schedule = Schedule::new(Pace::Burst { burst: 1 }, seeded(1));
        assert_eq!(schedule.due(0), Due::Now(0));
        for now in [SECOND / 10, SECOND / 100 * 96, SECOND - 1] {
            assert_eq!(schedule.due(now), Due::At(SECOND));
        }
        assert_eq!(schedule.due(SECOND), Due::Now(SECOND));
    }

    #[test]
    fn bursts_are_those_of_the_reference_second_by_second() {
        // iibench.py with four rounds per second reads the clock after rounds 0, 4, 8, …
        let mut schedule = Schedule::new(Pace::Burst { burst: 4 }, seeded(1));
        let sent = (0..4).map(|second| {
            let now = second * SECOND;
            std::iter::from_fn(|| (schedule.due(now) == Due::Now(now)).then_some(())).count()
        });
        assert_eq!(sent.collect::<Vec<_>>(), [1, 4, 4, 4]);
    }

    #[test]
    fn a_burst_that_took_its_second_is_followed_at_once_and_nothing_is_caught_up() {
        let mut schedule = Schedule::new(Pace::Burst { burst: 1 }, seeded(1));
        assert_eq!(schedule.due(0), Due::Now(0));
        assert_eq!(schedule.due(3 * SECOND), Due::Now(3 * SECOND));
        assert_eq!(schedule.due(3 * SECOND + 1), Due::At(4 * SECOND));
    }

    #[test]
    fn equal_seeds_give_equal_arrivals() {
        let pace = Pace::Open { rate: 50.0, arrivals: Arrivals::Poisson };
        assert_eq!(
            arrivals_within(Schedule::new(pace, seeded(3)), 2),
            arrivals_within(Schedule::new(pace, seeded(3)), 2)
        );
        assert_ne!(
            arrivals_within(Schedule::new(pace, seeded(3)), 2),
            arrivals_within(Schedule::new(pace, seeded(4)), 2)
        );
    }

    #[test]
    fn a_new_rate_holds_from_its_instant() {
        let pace = Pace::Open { rate: 1.0, arrivals: Arrivals::Uniform };
        let mut schedule = Schedule::new(pace, seeded(1));
        schedule.change_rate(0, 100.0);
        assert!((99..=101).contains(&arrivals_within(schedule, 1).len()));
    }

    #[test]
    fn a_new_rate_does_not_change_when_missed_arrivals_were_due() {
        let pace = Pace::Open { rate: 10.0, arrivals: Arrivals::Uniform };
        let missed = arrivals_within(Schedule::new(pace, seeded(1)), 5);
        let mut schedule = Schedule::new(pace, seeded(1));
        schedule.change_rate(5 * SECOND, 100.0);
        schedule.change_rate(7 * SECOND, 1.0);
        let found = arrivals_within(schedule, 17);
        assert_eq!(found[..missed.len()], missed);
        let within = |from: Nanos, until: Nanos| {
            found.iter().filter(|at| (from * SECOND..until * SECOND).contains(at)).count()
        };
        assert_eq!(missed.len(), 50);
        assert!((199..=201).contains(&within(5, 7)), "{}", within(5, 7));
        assert!((9..=11).contains(&within(7, 17)), "{}", within(7, 17));
    }
}
