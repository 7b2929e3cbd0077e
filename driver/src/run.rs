//! A run: connects, obeys commands, tells what happens.
//!
//! ```text
//! ready → (turns → slice… turns-ended | run → interval… run-ended | phase → phase | rate)… → stop → phase end
//! ```
//!
//! A signal ends it as `stop` does, but waits for transactions under way for a few seconds only.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::chores::{run_serially, run_stages};
use crate::clock::{Clock, Nanos, SECOND, nanos};
use crate::coordinator::{Coordinator, LOOK_EVERY, Slice, Undrained};
use crate::crew::muster;
use crate::dialogue::Dialogue;
use crate::ending::{Commands, Ending};
use crate::error::{Error, Result};
use crate::job::Job;
use crate::occupancy::Occupancy;
use crate::phase::{Intervals, PhaseSoFar};
use crate::processor::ProcessTimes;
use crate::results::{Interval, Phase, seconds};
use crate::signals::Signal;
use crate::workload::{Chores, catalogue};

/// After a signal the transactions under way have so long to end.
const INTERRUPTED_DRAIN: Nanos = 3 * SECOND;

/// What can be asked for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Give arms turns, in this order.
    Turns {
        /// Indices of arms.
        order: Vec<usize>,
        /// Length of a turn.
        slice_s: f64,
        /// Part of it, at its beginning, in which the servers' processor time is not counted.
        #[serde(default)]
        head_s: f64,
        /// How long each turn waits before it begins.
        #[serde(default)]
        delay_s: f64,
        /// By arm: the server's processes.
        #[serde(default)]
        pids: Vec<Vec<u32>>,
    },
    /// Run one arm, and report intervals.
    Run {
        /// Which.
        #[serde(default)]
        arm: usize,
        /// For how long; until told to stop if this is missing.
        #[serde(default)]
        duration_s: Option<f64>,
        /// When to start, in nanoseconds since the epoch; at once if this is missing.
        #[serde(default)]
        start_at_ns: Nanos,
        /// Length of an interval.
        #[serde(default = "a_second")]
        interval_s: f64,
    },
    /// Report what was counted, and count anew under this name.
    Phase {
        /// Of the phase that begins.
        name: String,
    },
    /// Change the rate of an open loop.
    Rate {
        /// Transactions per second over all clients of an arm.
        rate: f64,
    },
    /// End.
    Stop,
    /// End soon: a signal came. Never read from outside.
    #[serde(skip)]
    Interrupt(Signal),
}

/// A run that was ended by a signal, whose results are those until then.
#[derive(Debug)]
pub struct Interrupted {
    /// Which.
    pub signal: Signal,
    /// What did not end in time because of it.
    pub failure: Option<Error>,
}

fn a_second() -> f64 {
    1.0
}

/// What is told.
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

/// Takes events; an error ends the run.
pub type Tell<'a> = dyn FnMut(&Event) -> Result<()> + 'a;

/// A run under way.
struct Run<'a> {
    coordinator: Coordinator,
    dialogue: Dialogue<'a>,
    chores: Vec<Chores>,
}

/// Runs a job until its commands end, or a signal ends it.
pub fn run<'a>(
    job: &Job,
    commands: &'a Receiver<Result<Command>>,
    tell: &'a mut Tell<'a>,
) -> Result<Option<Interrupted>> {
    let (load, clients) = job.plan()?;
    let load = Arc::new(load);
    let occupancy = Arc::new(Occupancy::take(&load.arms, job.is_part)?);
    let versions = &occupancy.server_versions;
    let chores = versions
        .iter()
        .map(|version| catalogue::chores(&job.request(), version_number(version)))
        .collect::<Result<Vec<_>>>()?;
    for (arm, chores) in load.arms.iter().zip(&chores) {
        run_serially(&arm.info, &chores.before)?;
    }
    let crews = muster(&load, clients, job.threads, job.seed)?;
    let connections = crews.iter().map(|crew| crew.sessions.len()).sum();
    let drain_limit = nanos(job.drain_limit_s);
    let mut coordinator =
        Coordinator::start((load, &occupancy), Clock::start(), crews, &job.cpus, drain_limit)?;
    tell(&Event::Ready { server_versions: versions.clone(), connections })?;
    let began = coordinator.now();
    let phase = PhaseSoFar::begin("main", &mut coordinator);
    let (commands, has_rate) = (Commands::new(commands), job.rate.is_some());
    let dialogue = Dialogue { commands, tell, phase, began, has_rate, ending: None };
    let mut run = Run { coordinator, dialogue, chores };
    let outcome = run.obey_all();
    run.conclude(outcome)
}

/// Reads `server_version_num` off a version like `18.6 (Debian 18.6-1)`.
fn version_number(version: &str) -> u32 {
    let major = version.split(|character: char| !character.is_ascii_digit()).next().unwrap_or_default();
    major.parse::<u32>().unwrap_or(0) * 10_000
}

impl Run<'_> {
    fn obey_all(&mut self) -> Result<()> {
        while self.dialogue.ending.is_none() {
            let command = self.dialogue.commands.wait()?;
            self.obey(command)?;
        }
        Ok(())
    }

    /// Tells what was counted last. A signal is told even if something failed since.
    fn conclude(self, outcome: Result<()>) -> Result<Option<Interrupted>> {
        let Self { mut coordinator, mut dialogue, .. } = self;
        let interrupted_by = match dialogue.ending {
            Some(Ending::Signalled(signal)) => Some(signal),
            _ => None,
        };
        let Some(signal) = interrupted_by else {
            outcome?;
            dialogue.end(&mut coordinator, None)?;
            coordinator.finish()?;
            return (dialogue.tell)(&Event::End { interrupted_by }).map(|()| None);
        };
        dialogue.end(&mut coordinator, interrupted_by)?;
        let failure = outcome.and(coordinator.finish()).err();
        (dialogue.tell)(&Event::End { interrupted_by })?;
        Ok(Some(Interrupted { signal, failure }))
    }

    fn obey(&mut self, command: Command) -> Result<()> {
        if let Some(ending) = Ending::of(&command) {
            self.dialogue.ending = Some(ending);
            return Ok(());
        }
        match command {
            Command::Turns { order, slice_s, head_s, delay_s, pids } => {
                order.iter().try_for_each(|arm| self.require_arm(*arm))?;
                require("slice_s", slice_s, slice_s >= 0.0, "a number that is not negative")?;
                require("head_s", head_s, (0.0..=slice_s).contains(&head_s), "a part of slice_s")?;
                require("delay_s", delay_s, delay_s >= 0.0, "a number that is not negative")?;
                self.take_turns(&order, [slice_s, head_s, delay_s].map(nanos), &pids)
            }
            Command::Run { arm, duration_s, start_at_ns, interval_s } => {
                self.require_arm(arm)?;
                let duration = duration_s.unwrap_or(f64::INFINITY);
                require("duration_s", duration, duration > 0.0, "a positive number")?;
                require("interval_s", interval_s, interval_s >= 0.001, "at least 0.001")?;
                self.run_one(arm, start_at_ns, nanos(duration), nanos(interval_s))
            }
            Command::Phase { name } => {
                self.dialogue.take_counts(&mut self.coordinator);
                self.dialogue.change_phase(&mut self.coordinator, &name, None)
            }
            Command::Rate { rate } => self.dialogue.change_rate(&mut self.coordinator, rate),
            Command::Stop | Command::Interrupt(_) => Ok(()), // an ending
        }
    }

    fn take_turns(
        &mut self,
        order: &[usize],
        [slice, head, delay]: [Nanos; 3],
        pids: &[Vec<u32>],
    ) -> Result<()> {
        let mut servers: Vec<ProcessTimes> = pids.iter().map(|pids| ProcessTimes::open(pids)).collect();
        for arm in order {
            let Self { coordinator, dialogue, .. } = self;
            let start = coordinator.now().saturating_add(delay);
            let turn = coordinator.take_turn(*arm, (start, slice, head), &mut servers, |_, now| {
                dialogue.ending = dialogue.ending.or(dialogue.commands.asked_to_end()?);
                Ok(dialogue.go_on(now.saturating_add(LOOK_EVERY)))
            })?;
            let done = self.drain(turn)?;
            self.dialogue.phase.running[*arm] += done.end_ns - done.start_ns;
            (self.dialogue.tell)(&Event::Slice(done))?;
            if self.dialogue.ending.is_some() {
                break;
            }
        }
        (self.dialogue.tell)(&Event::TurnsEnded)
    }

    fn run_one(&mut self, arm: usize, start: Nanos, length: Nanos, every: Nanos) -> Result<()> {
        let start = start.max(self.coordinator.now());
        let mut intervals = Intervals::begin(start, start.saturating_add(length), every);
        let Self { coordinator, dialogue, .. } = self;
        let turn = coordinator.take_turn(arm, (start, length, 0), &mut [], |coordinator, now| {
            dialogue.watch_run(coordinator, (arm, start), &mut intervals, now)
        })?;
        if let Some(rest) = intervals.rest(turn.end()) {
            let counts = dialogue.take_counts(coordinator);
            dialogue.tell_interval(coordinator, &counts[arm], rest)?;
        }
        let done = self.drain(turn)?;
        // A phase that begins with the run's last instant may begin after its end.
        let phase = &mut self.dialogue.phase;
        phase.running[arm] += done.end_ns.saturating_sub(phase.began.max(done.start_ns));
        let chores_s = if self.dialogue.ending.is_some() { 0.0 } else { self.finish(arm)? };
        (self.dialogue.tell)(&Event::RunEnded { chores_s })
    }

    /// Waits for the transactions of a turn that are still under way. A signal is obeyed meanwhile; other commands
    /// wait: they would not end it sooner.
    fn drain(&mut self, turn: Undrained) -> Result<Slice> {
        let Dialogue { commands, ending, .. } = &mut self.dialogue;
        self.coordinator.drain(turn, || {
            *ending = commands.signal().map(Ending::Signalled).or(*ending);
            matches!(ending, Some(Ending::Signalled(_))).then_some(INTERRUPTED_DRAIN)
        })
    }

    /// Does what is to be done after the arm's clients; returns how long that took. Whoever asks for an end
    /// meanwhile does not wait for it: index builds may take hours.
    fn finish(&mut self, arm: usize) -> Result<f64> {
        let began = self.coordinator.now();
        let (load, stages) = (self.coordinator.load.clone(), self.chores[arm].after.clone());
        let (done, is_done) = mpsc::channel();
        std::thread::spawn(move || done.send(run_stages(&load.arms[arm].info, &stages)));
        loop {
            match is_done.recv_timeout(Duration::from_nanos(LOOK_EVERY)) {
                Ok(result) => return result.map(|()| seconds(self.coordinator.now() - began)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::new("the thread of the work after the clients panicked"));
                }
            }
            self.dialogue.ending = self.dialogue.commands.asked_to_end()?;
            if self.dialogue.ending.is_some() {
                return Err(Error::new("the run was ended before the work after its clients was done")
                    .detail("index builds and clean-ups belong to the step: it has no result"));
            }
        }
    }

    fn require_arm(&self, arm: usize) -> Result<()> {
        let arms = self.coordinator.load.arms.len();
        if arm < arms {
            return Ok(());
        }
        Err(Error::new(format!("there is no arm {arm}"))
            .detail(format!("arms are numbered from 0 to {}", arms - 1)))
    }
}

fn require(name: &str, value: f64, is_right: bool, wanted: &str) -> Result<()> {
    if is_right {
        return Ok(());
    }
    Err(Error::new(format!("{name} cannot be {value}")).hint(format!("give {wanted}")))
}
