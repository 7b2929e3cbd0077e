//! Controls a run: obeys commands and reports events. Counting and scheduling of turns are elsewhere.

use serde::Serialize;

use crate::clock::Nanos;
use crate::commands::{Command, Commands, StopReason, unexpected};
use crate::coordinator::{Coordinator, POLL_INTERVAL, Slice, Watch};
use crate::error::{Error, Result};
use crate::job::RATES;
use crate::phase::{Intervals, PhaseSoFar};
use crate::record::Counts;
use crate::results::{Interval, Phase, interval};
use crate::signals::Signal;

/// A reported event.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Event {
    Ready {
        server_versions: Vec<String>,
        connections: usize,
    },
    Slice(Slice),
    TurnsEnded,
    Interval(Interval),
    RunEnded {
        chores_s: f64,
    },
    Phase(Phase),
    End {
        #[serde(skip_serializing_if = "Option::is_none")]
        interrupted_by: Option<Signal>,
    },
    Error(Error),
}

/// Receives events; an error ends the run.
pub type OnEvent<'a> = dyn FnMut(&Event) -> Result<()> + 'a;

/// The commands, events and current phase of a run.
pub struct Control<'a> {
    /// The incoming commands.
    pub commands: Commands<'a>,
    /// Receives events.
    pub on_event: &'a mut OnEvent<'a>,
    /// The current phase.
    pub phase: PhaseSoFar,
    /// When the first run could begin: the origin of interval times.
    pub began: Nanos,
    /// Whether the loop is open.
    pub has_rate: bool,
    /// The reason to stop; `None` while the run continues.
    pub stop: Option<StopReason>,
}

impl Control<'_> {
    /// Reports intervals and obeys commands while an arm runs; `start` is when it began.
    pub fn watch_run(
        &mut self,
        coordinator: &mut Coordinator,
        (arm, start): (usize, Nanos),
        intervals: &mut Intervals,
        now: Nanos,
    ) -> Result<Watch> {
        let command = self.commands.try_next()?;
        let is_last = matches!(command, Some(Command::Phase { .. }));
        let ended = if is_last { intervals.end_early(now) } else { intervals.end_due(now) };
        if ended.is_some() || is_last {
            // An interval ends with its phase: its transactions count in both or in neither.
            let counts = self.take_counts(coordinator);
            if let Some(ended) = ended {
                self.report_interval(coordinator, &counts[arm], ended)?;
            }
        }
        match command {
            Some(Command::Rate { rate }) => self.change_rate(coordinator, rate)?,
            Some(Command::Phase { name }) => self.change_phase(coordinator, &name, Some((arm, start)))?,
            Some(other) => {
                self.stop = self.stop.or(StopReason::of(&other));
                if self.stop.is_none() {
                    return Err(unexpected(&other));
                }
            }
            None => {}
        }
        Ok(self.go_on(intervals.due().min(now.saturating_add(POLL_INTERVAL))))
    }

    /// Stops the turn, or continues it with the next call at `until`.
    pub fn go_on(&self, until: Nanos) -> Watch {
        if self.stop.is_none() { Watch::Until(until) } else { Watch::Stop }
    }

    /// Takes the counts since the last call, and adds them to the phase.
    pub fn take_counts(&mut self, coordinator: &mut Coordinator) -> Vec<Vec<Counts>> {
        let counts = coordinator.take_counts();
        self.phase.add(&counts);
        counts
    }

    /// Reports an interval with these counts, end and length.
    pub fn report_interval(
        &mut self,
        coordinator: &Coordinator,
        counts: &[Counts],
        (ended, length): (Nanos, Nanos),
    ) -> Result<()> {
        let result = interval(&coordinator.load, counts, ended.saturating_sub(self.began), length);
        (self.on_event)(&Event::Interval(result))
    }

    /// Reports the current phase and begins another one. `running`: the running arm and its start.
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
        (self.on_event)(&Event::Phase(ended.end(coordinator)))
    }

    /// Reports the last phase.
    pub fn end(&mut self, coordinator: &mut Coordinator, interrupted_by: Option<Signal>) -> Result<()> {
        self.take_counts(coordinator);
        let result = Phase { interrupted_by, ..self.phase.end(coordinator) };
        (self.on_event)(&Event::Phase(result))
    }

    /// Changes the rate of an open loop. Fails in a closed loop.
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
