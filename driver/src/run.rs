//! A run: connects, obeys commands, reports events.
//!
//! ```text
//! ready → (turns → slice… turns-ended | run → interval… run-ended | phase → phase | rate)…
//!       → stop → phase end
//! ```
//!
//! A signal ends it like `stop`, but waits only a few seconds for running transactions.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::clock::{Clock, Nanos, SECOND, nanos};
use crate::commands::{Command, Commands, StopReason};
use crate::control::{Control, Event, OnEvent};
use crate::coordinator::{Coordinator, POLL_INTERVAL, Slice, Undrained};
use crate::database_locks::DatabaseLocks;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::phase::{Intervals, PhaseSoFar};
use crate::placement::place_clients;
use crate::processor::ProcessTimes;
use crate::results::seconds;
use crate::signals::Signal;
use crate::stages::{run_serially, run_stages};
use crate::workload::{Hooks, catalogue};

/// Time limit on running transactions after a signal.
const INTERRUPTED_DRAIN: Nanos = 3 * SECOND;

/// A run terminated by a signal; its results cover the time until then.
#[derive(Debug)]
pub struct Interrupted {
    /// The signal.
    pub signal: Signal,
    /// An error after the signal, such as transactions that did not end in time.
    pub failure: Option<Error>,
}

struct Run<'a> {
    coordinator: Coordinator,
    control: Control<'a>,
    hooks: Vec<Hooks>,
}

/// Runs a job until its commands end or a signal terminates it.
pub fn run<'a>(
    job: &Job,
    commands: &'a Receiver<Result<Command>>,
    on_event: &'a mut OnEvent<'a>,
) -> Result<Option<Interrupted>> {
    let (load, clients) = job.plan()?;
    let load = Arc::new(load);
    let locks = Arc::new(DatabaseLocks::take(&load.arms, job.is_part)?);
    let versions = &locks.server_versions;
    let hooks = versions
        .iter()
        .map(|version| catalogue::hooks(&job.request(), version_number(version)))
        .collect::<Result<Vec<_>>>()?;
    for (arm, hooks) in load.arms.iter().zip(&hooks) {
        run_serially(&arm.info, &hooks.before)?;
    }
    let thread_loads = place_clients(&load, clients, job.threads, job.seed)?;
    let connections = thread_loads.iter().map(|one| one.sessions.len()).sum();
    let drain_limit = nanos(job.drain_limit_s);
    let mut coordinator =
        Coordinator::start((load, &locks), Clock::start(), thread_loads, &job.cpus, drain_limit)?;
    on_event(&Event::Ready { server_versions: versions.clone(), connections })?;
    let began = coordinator.now();
    let phase = PhaseSoFar::begin("main", &mut coordinator);
    let (commands, has_rate) = (Commands::new(commands), job.rate.is_some());
    let control = Control { commands, on_event, phase, began, has_rate, stop: None };
    let mut run = Run { coordinator, control, hooks };
    let outcome = run.obey_all();
    run.conclude(outcome)
}

/// Computes `server_version_num`, without the minor version, from a version like `18.6 (Debian 18.6-1)`.
fn version_number(version: &str) -> u32 {
    let major = version.split(|character: char| !character.is_ascii_digit()).next().unwrap_or_default();
    major.parse::<u32>().unwrap_or(0) * 10_000
}

impl Run<'_> {
    fn obey_all(&mut self) -> Result<()> {
        while self.control.stop.is_none() {
            let command = self.control.commands.wait()?;
            self.obey(command)?;
        }
        Ok(())
    }

    /// Reports the last phase. A signal is reported even after a later failure.
    fn conclude(self, outcome: Result<()>) -> Result<Option<Interrupted>> {
        let Self { mut coordinator, mut control, .. } = self;
        let interrupted_by = match control.stop {
            Some(StopReason::Signalled(signal)) => Some(signal),
            _ => None,
        };
        let Some(signal) = interrupted_by else {
            outcome?;
            control.end(&mut coordinator, None)?;
            coordinator.finish()?;
            return (control.on_event)(&Event::End { interrupted_by }).map(|()| None);
        };
        control.end(&mut coordinator, interrupted_by)?;
        let failure = outcome.and(coordinator.finish()).err();
        (control.on_event)(&Event::End { interrupted_by })?;
        Ok(Some(Interrupted { signal, failure }))
    }

    fn obey(&mut self, command: Command) -> Result<()> {
        if let Some(reason) = StopReason::of(&command) {
            self.control.stop = Some(reason);
            return Ok(());
        }
        match command {
            Command::Turns { order, slice_s, head_s, delay_s, pids } => {
                order.iter().try_for_each(|arm| self.require_arm(*arm))?;
                require("slice_s", slice_s, slice_s >= 0.0, "a non-negative number")?;
                require("head_s", head_s, (0.0..=slice_s).contains(&head_s), "a number from 0 to slice_s")?;
                require("delay_s", delay_s, delay_s >= 0.0, "a non-negative number")?;
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
                self.control.take_counts(&mut self.coordinator);
                self.control.change_phase(&mut self.coordinator, &name, None)
            }
            Command::Rate { rate } => self.control.change_rate(&mut self.coordinator, rate),
            Command::Stop | Command::Interrupt(_) => Ok(()), // handled above
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
            let Self { coordinator, control, .. } = self;
            let start = coordinator.now().saturating_add(delay);
            let turn = coordinator.take_turn(*arm, (start, slice, head), &mut servers, |_, now| {
                control.stop = control.stop.or(control.commands.stop_requested()?);
                Ok(control.go_on(now.saturating_add(POLL_INTERVAL)))
            })?;
            let done = self.drain(turn)?;
            self.control.phase.running[*arm] += done.end_ns - done.start_ns;
            (self.control.on_event)(&Event::Slice(done))?;
            if self.control.stop.is_some() {
                break;
            }
        }
        (self.control.on_event)(&Event::TurnsEnded)
    }

    fn run_one(&mut self, arm: usize, start: Nanos, length: Nanos, every: Nanos) -> Result<()> {
        let start = start.max(self.coordinator.now());
        let mut intervals = Intervals::begin(start, start.saturating_add(length), every);
        let Self { coordinator, control, .. } = self;
        let turn = coordinator.take_turn(arm, (start, length, 0), &mut [], |coordinator, now| {
            control.watch_run(coordinator, (arm, start), &mut intervals, now)
        })?;
        if let Some(rest) = intervals.rest(turn.end()) {
            let counts = control.take_counts(coordinator);
            control.report_interval(coordinator, &counts[arm], rest)?;
        }
        let done = self.drain(turn)?;
        // A phase begun at the run's last instant may begin after its end.
        let phase = &mut self.control.phase;
        phase.running[arm] += done.end_ns.saturating_sub(phase.began.max(done.start_ns));
        let chores_s = if self.control.stop.is_some() { 0.0 } else { self.finish(arm)? };
        (self.control.on_event)(&Event::RunEnded { chores_s })
    }

    /// Waits for the running transactions of a turn. Signals are obeyed during the wait; other commands are
    /// deferred: they would not end it sooner.
    fn drain(&mut self, turn: Undrained) -> Result<Slice> {
        let Control { commands, stop, .. } = &mut self.control;
        self.coordinator.drain(turn, || {
            *stop = commands.signal().map(StopReason::Signalled).or(*stop);
            matches!(stop, Some(StopReason::Signalled(_))).then_some(INTERRUPTED_DRAIN)
        })
    }

    /// Runs the arm's post-run statements; returns how long they took, in seconds. A stop does not wait for
    /// them: index builds may take hours.
    fn finish(&mut self, arm: usize) -> Result<f64> {
        let began = self.coordinator.now();
        let (load, stages) = (self.coordinator.load.clone(), self.hooks[arm].after.clone());
        let (done, is_done) = mpsc::channel();
        std::thread::spawn(move || done.send(run_stages(&load.arms[arm].info, &stages)));
        loop {
            match is_done.recv_timeout(Duration::from_nanos(POLL_INTERVAL)) {
                Ok(result) => return result.map(|()| seconds(self.coordinator.now() - began)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::new("the thread of the post-run statements panicked"));
                }
            }
            self.control.stop = self.control.commands.stop_requested()?;
            if self.control.stop.is_some() {
                return Err(Error::new("the run was stopped before its post-run statements were complete")
                    .detail("index builds and clean-up are part of the step: it has no result"));
            }
        }
    }

    fn require_arm(&self, arm: usize) -> Result<()> {
        let arms = self.coordinator.load.arms.len();
        if arm < arms {
            return Ok(());
        }
        Err(Error::new(format!("arm {arm} does not exist"))
            .detail(format!("arms are numbered from 0 to {}", arms - 1)))
    }
}

fn require(name: &str, value: f64, is_right: bool, wanted: &str) -> Result<()> {
    if is_right {
        return Ok(());
    }
    Err(Error::new(format!("{name} cannot be {value}")).hint(format!("give {wanted}")))
}
