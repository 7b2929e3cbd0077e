//! Phases of a run, with their counts and the driver's own resource usage, and the reporting intervals.

use crate::clock::Nanos;
use crate::coordinator::Coordinator;
use crate::processor::{own_time, peak_memory_bytes};
use crate::record::Counts;
use crate::results::{Audit, Phase, arm_result, seconds};

/// The last, partial interval of a run is reported unless it is shorter than 1/10 of an interval: a rate over
/// less is noise.
const SMALLEST_REST: Nanos = 10;

/// The current phase.
pub struct PhaseSoFar {
    name: String,
    /// When it began, on the driver's clock.
    pub began: Nanos,
    own_cpu: Nanos,
    thread_cpu: Vec<Nanos>,
    counts: Vec<Vec<Counts>>,
    /// Running time of each arm.
    pub running: Vec<Nanos>,
}

impl PhaseSoFar {
    /// Begins a phase of this name.
    pub fn begin(name: &str, coordinator: &mut Coordinator) -> Self {
        let load = &coordinator.load;
        let roles = || load.roles.iter().map(|role| Counts::new(role.clients)).collect();
        let counts = load.arms.iter().map(|_| roles()).collect();
        let running = vec![0; load.arms.len()];
        Self {
            name: name.into(),
            began: coordinator.now(),
            own_cpu: own_time(),
            thread_cpu: coordinator.thread_times(),
            counts,
            running,
        }
    }

    /// Adds counts taken from the coordinator.
    pub fn add(&mut self, counts: &[Vec<Counts>]) {
        for (own, other) in self.counts.iter_mut().flatten().zip(counts.iter().flatten()) {
            own.add(other);
        }
    }

    /// Returns the phase with all added counts. Counts still with the coordinator belong to the next phase.
    pub fn end(&self, coordinator: &mut Coordinator) -> Phase {
        let wall = coordinator.now() - self.began;
        let busy = coordinator.thread_times();
        let busy =
            busy.iter().zip(&self.thread_cpu).map(|(after, before)| (after - before) as f64 / wall as f64);
        let arms = self.counts.iter().zip(&self.running).enumerate();
        Phase {
            name: self.name.clone(),
            wall_s: seconds(wall),
            arms: arms
                .map(|(arm, (counts, running))| arm_result(&coordinator.load, arm, counts, *running))
                .collect(),
            driver: Audit {
                cpu_s: seconds(own_time() - self.own_cpu),
                thread_busy_shares: busy.collect(),
                peak_memory_bytes: peak_memory_bytes(),
            },
            interrupted_by: None,
        }
    }
}

/// The reporting intervals of a run, due at multiples of `every` from its start. An interval that ends late,
/// by the microseconds of a wake-up, does not delay the following ones.
pub struct Intervals {
    began: Nanos,
    due: Nanos,
    every: Nanos,
    run_end: Nanos,
}

impl Intervals {
    /// Begins the first interval of a run planned to end at `run_end`.
    pub fn begin(start: Nanos, run_end: Nanos, every: Nanos) -> Self {
        Self { began: start, due: start.saturating_add(every), every, run_end }
    }

    /// When the current interval is due.
    pub fn due(&self) -> Nanos {
        self.due
    }

    /// Ends the current interval if it is due; returns its end and true length.
    pub fn end_due(&mut self, now: Nanos) -> Option<(Nanos, Nanos)> {
        let now = now.min(self.run_end);
        let late = now.checked_sub(self.due)?;
        // Missed intervals are part of it.
        self.due = self.due.saturating_add((late / self.every + 1) * self.every);
        Some(self.end(now))
    }

    /// Ends the current interval with its phase, if it has begun; the next ones are due from here on.
    pub fn end_early(&mut self, now: Nanos) -> Option<(Nanos, Nanos)> {
        let now = now.min(self.run_end);
        if now <= self.began {
            return None;
        }
        self.due = now.saturating_add(self.every);
        Some(self.end(now))
    }

    /// The end and length of the last, partial interval of a run; `None` if it is too short.
    pub fn rest(mut self, run_ended: Nanos) -> Option<(Nanos, Nanos)> {
        let rest = run_ended.saturating_sub(self.began);
        (rest >= self.every / SMALLEST_REST).then(|| self.end(run_ended))
    }

    fn end(&mut self, now: Nanos) -> (Nanos, Nanos) {
        let length = now - self.began;
        self.began = now;
        (now, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run from 1000 to 1300 with intervals of 100.
    fn three() -> Intervals {
        Intervals::begin(1000, 1300, 100)
    }

    #[test]
    fn late_looks_do_not_add_up_and_the_last_interval_ends_with_the_run() {
        let mut intervals = three();
        let looks = [1050, 1103, 1199, 1204, 1305];
        let ended = looks.map(|now| intervals.end_due(now));
        assert_eq!(ended, [None, Some((1103, 103)), None, Some((1204, 101)), Some((1300, 96))]);
        assert_eq!(intervals.rest(1300), None);
    }

    #[test]
    fn the_rest_has_its_true_length_unless_it_is_tiny() {
        let mut intervals = three();
        assert_eq!(intervals.end_due(1100), Some((1100, 100)));
        assert_eq!(intervals.rest(1172), Some((1172, 72)));
        for (ended, rest) in [(1009, None), (1010, Some((1010, 10))), (1299, Some((1299, 299)))] {
            assert_eq!(three().rest(ended), rest);
        }
    }

    #[test]
    fn missed_intervals_are_part_of_the_one_reported_late() {
        let mut intervals = three();
        assert_eq!((intervals.end_due(1250), intervals.due()), (Some((1250, 250)), 1300));
    }

    #[test]
    fn a_phase_ends_its_interval_and_the_next_ones_count_from_there() {
        let mut intervals = three();
        assert_eq!((intervals.end_early(1040), intervals.due()), (Some((1040, 40)), 1140));
        assert_eq!((intervals.end_early(1040), intervals.due()), (None, 1140));
    }

    #[test]
    fn a_run_that_starts_at_the_end_of_time_has_no_interval_before() {
        let mut intervals = Intervals::begin(Nanos::MAX - 1, Nanos::MAX, 100);
        assert_eq!((intervals.end_due(5), intervals.end_early(5)), (None, None));
        assert_eq!((intervals.due(), intervals.rest(5)), (Nanos::MAX, None));
    }
}
