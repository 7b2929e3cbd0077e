//! What is asked for while a run is under way, and what is told of it. It counts nothing and gives no turns itself.

use crate::clock::Nanos;
use crate::coordinator::{Coordinator, LOOK_EVERY, Watch};
use crate::ending::{Commands, Ending, unexpected};
use crate::error::{Error, Result};
use crate::job::RATES;
use crate::phase::{Intervals, PhaseSoFar};
use crate::record::Counts;
use crate::results::{Phase, interval};
use crate::run::{Command, Event, Tell};
use crate::signals::Signal;

/// Commands, and the events that answer them.
pub struct Dialogue<'a> {
    /// What is asked for.
    pub commands: Commands<'a>,
    /// Takes events.
    pub tell: &'a mut Tell<'a>,
    /// In which is counted.
    pub phase: PhaseSoFar,
    /// When the first run could begin; intervals count from it.
    pub began: Nanos,
    /// Whether the loop is open.
    pub has_rate: bool,
    /// Why the run ends, if it does.
    pub ending: Option<Ending>,
}

impl Dialogue<'_> {
    /// Tells intervals and obeys commands while an arm runs that began at `start`.
    pub fn watch_run(
        &mut self,
        coordinator: &mut Coordinator,
        (arm, start): (usize, Nanos),
        intervals: &mut Intervals,
        now: Nanos,
    ) -> Result<Watch> {
        let command = self.commands.look()?;
        let is_last = matches!(command, Some(Command::Phase { .. }));
        let ended = if is_last { intervals.end_early(now) } else { intervals.end_due(now) };
        if ended.is_some() || is_last {
            // An interval ends with its phase: its transactions are in both or in neither.
            let counts = self.take_counts(coordinator);
            if let Some(ended) = ended {
                self.tell_interval(coordinator, &counts[arm], ended)?;
            }
        }
        match command {
            Some(Command::Rate { rate }) => self.change_rate(coordinator, rate)?,
            Some(Command::Phase { name }) => self.change_phase(coordinator, &name, Some((arm, start)))?,
            Some(other) => {
                self.ending = self.ending.or(Ending::of(&other));
                if self.ending.is_none() {
                    return Err(unexpected(&other));
                }
            }
            None => {}
        }
        Ok(self.go_on(intervals.due().min(now.saturating_add(LOOK_EVERY))))
    }

    /// Whether the watched turn goes on, and until when it need not be asked again.
    pub fn go_on(&self, until: Nanos) -> Watch {
        if self.ending.is_none() { Watch::Until(until) } else { Watch::Stop }
    }

    /// Takes what was counted since the last call; it belongs to the phase.
    pub fn take_counts(&mut self, coordinator: &mut Coordinator) -> Vec<Vec<Counts>> {
        let counts = coordinator.take_counts();
        self.phase.add(&counts);
        counts
    }

    /// Tells an interval: what was counted, when it ended, and how long it was.
    pub fn tell_interval(
        &mut self,
        coordinator: &Coordinator,
        counts: &[Counts],
        (ended, length): (Nanos, Nanos),
    ) -> Result<()> {
        let result = interval(&coordinator.load, counts, ended.saturating_sub(self.began), length);
        (self.tell)(&Event::Interval(result))
    }

    /// Tells what was counted in the phase, and begins another one. `running`: the arm that has its turn, and since
    /// when.
    pub fn change_phase(
        &mut self,
        coordinator: &mut Coordinator,
        name: &str,
        running: Option<(usize, Nanos)>,
    ) -> Result<()> {
        let next = PhaseSoFar::begin(name, coordinator);
        if let Some((arm, start)) = running {
            self.phase.running[arm] += next.began.saturating_sub(self.phase.began.max(start));
        }
        let ended = std::mem::replace(&mut self.phase, next);
        (self.tell)(&Event::Phase(ended.end(coordinator)))
    }

    /// Tells what was counted in the last phase.
    pub fn end(&mut self, coordinator: &mut Coordinator, interrupted_by: Option<Signal>) -> Result<()> {
        self.take_counts(coordinator);
        let result = Phase { interrupted_by, ..self.phase.end(coordinator) };
        (self.tell)(&Event::Phase(result))
    }

    /// Changes the rate, if there is one to change.
    pub fn change_rate(&self, coordinator: &mut Coordinator, rate: f64) -> Result<()> {
        let refused = || Error::new(format!("cannot change the rate to {rate}"));
        if !self.has_rate {
            return Err(refused().detail("the loop is closed").hint("start with a rate"));
        }
        if !RATES.contains(&rate) {
            return Err(refused().hint(format!("give a number from {} to {}", RATES.start(), RATES.end())));
        }
        coordinator.change_rate(rate)
    }
}
