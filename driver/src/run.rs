//! A run: connects, obeys commands, tells what happens.
//!
//! ```text
//! ready → (turns → slice… turns-ended | run → interval… run-ended | phase → phase | rate)… → stop → phase end
//! ```
//!
//! A signal ends it as `stop` does, but waits for transactions under way for a few seconds only.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::chores::{run_serially, run_stages};
use crate::clock::{Clock, Nanos, SECOND, nanos};
use crate::coordinator::{Coordinator, Slice, Watch};
use crate::crew::muster;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::occupancy::Occupancy;
use crate::phase::PhaseSoFar;
use crate::processor::ProcessTimes;
use crate::results::{Interval, Phase, interval, seconds};
use crate::signals::Signal;
use crate::workload::{Chores, catalogue};

/// A turn looks for commands this often: each look is a switch to another thread, which costs tens of microseconds.
const LOOK_EVERY: Nanos = SECOND / 10;
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

/// Why a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// It was told to, or nobody is there to give commands any more.
    Told,
    /// By a signal.
    Signalled(Signal),
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
    commands: &'a Receiver<Result<Command>>,
    tell: &'a mut Tell<'a>,
    phase: PhaseSoFar,
    chores: Vec<Chores>,
    began: Nanos,
    has_rate: bool,
    ending: Option<Ending>,
}

/// Runs a job until its commands end, or a signal ends it.
pub fn run<'a>(
    job: &Job,
    commands: &'a Receiver<Result<Command>>,
    tell: &'a mut Tell<'a>,
) -> Result<Option<Interrupted>> {
    let (load, clients) = job.plan()?;
    let load = Arc::new(load);
    let occupancy = Arc::new(Occupancy::take(&load.arms)?);
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
    let has_rate = job.rate.is_some();
    let mut run = Run { coordinator, commands, tell, phase, chores, began, has_rate, ending: None };
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
        while self.ending.is_none() {
            match self.commands.recv() {
                Ok(command) => self.obey(command?)?,
                Err(_) => self.ending = Some(Ending::Told),
            }
        }
        Ok(())
    }

    /// Tells what was counted last. A signal is told even if something failed since.
    fn conclude(mut self, outcome: Result<()>) -> Result<Option<Interrupted>> {
        let Some(Ending::Signalled(signal)) = self.ending else {
            outcome?;
            let result = self.phase.end(&mut self.coordinator);
            (self.tell)(&Event::Phase(result))?;
            self.coordinator.finish()?;
            return (self.tell)(&Event::End { interrupted_by: None }).map(|()| None);
        };
        let interrupted_by = Some(signal);
        let result = Phase { interrupted_by, ..self.phase.end(&mut self.coordinator) };
        (self.tell)(&Event::Phase(result))?;
        let failure = outcome.and(self.coordinator.finish()).err();
        (self.tell)(&Event::End { interrupted_by })?;
        Ok(Some(Interrupted { signal, failure }))
    }

    fn obey(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Turns { order, slice_s, head_s, pids } => {
                order.iter().try_for_each(|arm| self.require_arm(*arm))?;
                require("slice_s", slice_s, slice_s >= 0.0, "a number that is not negative")?;
                require("head_s", head_s, (0.0..=slice_s).contains(&head_s), "a part of slice_s")?;
                self.take_turns(&order, nanos(slice_s), nanos(head_s), &pids)
            }
            Command::Run { arm, duration_s, start_at_ns, interval_s } => {
                self.require_arm(arm)?;
                let duration = duration_s.unwrap_or(f64::INFINITY);
                require("duration_s", duration, duration > 0.0, "a positive number")?;
                require("interval_s", interval_s, interval_s >= 0.001, "at least 0.001")?;
                self.run_one(arm, start_at_ns, nanos(duration), nanos(interval_s))
            }
            Command::Phase { name } => self.change_phase(&name),
            Command::Rate { rate } => change_rate(&mut self.coordinator, self.has_rate, rate),
            Command::Stop => {
                self.ending = Some(Ending::Told);
                Ok(())
            }
            Command::Interrupt(signal) => {
                self.ending = Some(Ending::Signalled(signal));
                Ok(())
            }
        }
    }

    fn take_turns(&mut self, order: &[usize], slice: Nanos, head: Nanos, pids: &[Vec<u32>]) -> Result<()> {
        let mut servers: Vec<ProcessTimes> = pids.iter().map(|pids| ProcessTimes::open(pids)).collect();
        for arm in order {
            let Self { coordinator, commands, ending, .. } = self;
            let done = coordinator.take_turn(*arm, (0, slice, head), &mut servers, |coordinator, now| {
                *ending = ending.or(asked_to_end(commands)?);
                Ok(go_on(*ending, coordinator, now + LOOK_EVERY))
            })?;
            self.phase.running[*arm] += done.end_ns - done.start_ns;
            (self.tell)(&Event::Slice(done))?;
            if self.ending.is_some() {
                break;
            }
        }
        (self.tell)(&Event::TurnsEnded)
    }

    fn run_one(&mut self, arm: usize, start: Nanos, length: Nanos, every: Nanos) -> Result<()> {
        let start = start.max(self.coordinator.now());
        let mut last = start;
        let Self { coordinator, commands, tell, phase, began, has_rate, ending, .. } = self;
        let done = coordinator.take_turn(arm, (start, length, 0), &mut [], |coordinator, now| {
            let command = commands.try_recv();
            // An interval ends with its phase: its transactions are in both or in neither.
            let is_last = matches!(command, Ok(Ok(Command::Phase { .. }))) && now > last;
            if now >= last + every || is_last {
                let counts = coordinator.take_counts();
                let result = interval(&coordinator.load, &counts[arm], now - *began, now - last);
                tell(&Event::Interval(result))?;
                phase.add(&counts);
                last = now;
            }
            *ending = ending.or(ending_of(&command));
            match command {
                Ok(Ok(Command::Rate { rate })) => change_rate(coordinator, *has_rate, rate)?,
                Ok(Ok(Command::Phase { name })) => {
                    let next = PhaseSoFar::begin(&name, coordinator);
                    phase.running[arm] += next.began.saturating_sub(phase.began.max(start));
                    let mut ended = std::mem::replace(phase, next);
                    tell(&Event::Phase(ended.end(coordinator)))?;
                }
                Ok(Ok(other)) if ending.is_none() => return Err(unexpected(&other)),
                Ok(Err(error)) => return Err(error),
                Ok(Ok(_)) | Err(_) => {}
            }
            Ok(go_on(*ending, coordinator, (last + every).min(now + LOOK_EVERY)))
        })?;
        // A phase that begins with the run's last instant may begin after its end.
        self.phase.running[arm] += done.end_ns.saturating_sub(self.phase.began.max(done.start_ns));
        let chores_s = if self.ending.is_some() { 0.0 } else { self.finish(arm)? };
        (self.tell)(&Event::RunEnded { chores_s })
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
            self.ending = asked_to_end(self.commands)?;
            if self.ending.is_some() {
                return Err(Error::new("the run was ended before the work after its clients was done")
                    .detail("index builds and clean-ups belong to the step: it has no result"));
            }
        }
    }

    fn change_phase(&mut self, name: &str) -> Result<()> {
        let next = PhaseSoFar::begin(name, &mut self.coordinator);
        let mut ended = std::mem::replace(&mut self.phase, next);
        (self.tell)(&Event::Phase(ended.end(&mut self.coordinator)))
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

fn change_rate(coordinator: &mut Coordinator, has_rate: bool, rate: f64) -> Result<()> {
    let is_possible = rate > 0.0 && rate < 1e9;
    if !has_rate || !is_possible {
        return Err(Error::new(format!("cannot change the rate to {rate}"))
            .detail("a rate is positive, and only an open loop has one")
            .hint("start with a rate"));
    }
    coordinator.change_rate(rate)
}

fn require(name: &str, value: f64, is_right: bool, wanted: &str) -> Result<()> {
    if is_right {
        return Ok(());
    }
    Err(Error::new(format!("{name} cannot be {value}")).hint(format!("give {wanted}")))
}

/// Whether the watched turn goes on, and until when it need not be asked again.
fn go_on(ending: Option<Ending>, coordinator: &mut Coordinator, until: Nanos) -> Watch {
    match ending {
        None => Watch::Until(until),
        Some(Ending::Told) => Watch::Stop,
        Some(Ending::Signalled(_)) => {
            coordinator.shorten_drain(INTERRUPTED_DRAIN);
            Watch::Stop
        }
    }
}

fn ending_of(command: &std::result::Result<Result<Command>, TryRecvError>) -> Option<Ending> {
    match command {
        Ok(Ok(Command::Stop)) | Err(TryRecvError::Disconnected) => Some(Ending::Told),
        Ok(Ok(Command::Interrupt(signal))) => Some(Ending::Signalled(*signal)),
        _ => None,
    }
}

/// Looks for a command while only an end may be asked for.
fn asked_to_end(commands: &Receiver<Result<Command>>) -> Result<Option<Ending>> {
    let command = commands.try_recv();
    match (ending_of(&command), command) {
        (None, Ok(command)) => Err(unexpected(&command?)),
        (ending, _) => Ok(ending),
    }
}

fn unexpected(command: &Command) -> Error {
    Error::new("a command came at the wrong time").detail(format!("{command:?} while a run is under way"))
}
