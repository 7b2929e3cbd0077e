//! A run: connects, obeys commands, tells what happens.
//!
//! ```text
//! ready → (turns → slice… turns-ended | run → interval… run-ended | phase → phase | rate)… → stop → phase end
//! ```

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::chores::{run_serially, run_stages};
use crate::clock::{Clock, Nanos, nanos};
use crate::connect::Connection;
use crate::coordinator::{Coordinator, Slice, Watch};
use crate::crew::muster;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::processor::{ProcessTimes, own_time, peak_memory_bytes};
use crate::record::Counts;
use crate::results::{Audit, Interval, Phase, arm_result, interval, seconds};
use crate::workload::{Chores, catalogue};

/// Whoever holds this lock on a database works on it alone. The number is arbitrary ("pgdyno" in ASCII).
const LOCK: &str = "SELECT pg_try_advisory_lock(123597430287983)::int";
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(100);
/// A turn looks for commands this often.
const LOOK_EVERY: Nanos = 20_000_000;

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
}

fn a_second() -> f64 {
    1.0
}

/// What is told.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Event {
    Ready { server_versions: Vec<String>, connections: usize },
    Slice(Slice),
    TurnsEnded,
    Interval(Interval),
    RunEnded { chores_s: f64 },
    Phase(Phase),
    End,
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
    is_stopped: bool,
}

struct PhaseSoFar {
    name: String,
    began: Nanos,
    own_cpu: Nanos,
    thread_cpu: Vec<Nanos>,
    counts: Vec<Vec<Counts>>,
    running: Vec<Nanos>,
}

/// Runs a job until its commands end.
pub fn run<'a>(job: &Job, commands: &'a Receiver<Result<Command>>, tell: &'a mut Tell<'a>) -> Result<()> {
    let (load, clients) = job.plan()?;
    let load = Arc::new(load);
    let locks = load.arms.iter().map(|arm| occupy(&arm.info)).collect::<Result<Vec<_>>>()?;
    let chores = locks
        .iter()
        .map(|lock| catalogue::chores(&job.request(), version_number(&lock.server_version)))
        .collect::<Result<Vec<_>>>()?;
    for (arm, chores) in load.arms.iter().zip(&chores) {
        run_serially(&arm.info, &chores.before)?;
    }
    let crews = muster(&load, clients, job.threads, job.seed)?;
    let connections = crews.iter().map(|crew| crew.sessions.len()).sum();
    let drain_limit = nanos(job.drain_limit_s);
    let mut coordinator = Coordinator::start(load, Clock::start(), crews, &job.cpus, drain_limit)?;
    let server_versions = locks.iter().map(|lock| lock.server_version.clone()).collect();
    tell(&Event::Ready { server_versions, connections })?;
    let began = coordinator.now();
    let phase = PhaseSoFar::begin("main", &mut coordinator);
    let has_rate = job.rate.is_some();
    let mut run = Run { coordinator, commands, tell, phase, chores, began, has_rate, is_stopped: false };
    while !run.is_stopped {
        match run.commands.recv() {
            Ok(command) => run.obey(command?)?,
            Err(_) => break, // nobody is there to give commands any more
        }
    }
    let result = run.phase.end(&mut run.coordinator);
    (run.tell)(&Event::Phase(result))?;
    run.coordinator.finish()?;
    (run.tell)(&Event::End)
}

/// Reads `server_version_num` off a version like `18.6 (Debian 18.6-1)`.
fn version_number(version: &str) -> u32 {
    let major = version.split(|character: char| !character.is_ascii_digit()).next().unwrap_or_default();
    major.parse::<u32>().unwrap_or(0) * 10_000
}

/// Opens a connection that keeps others from measuring on the same database.
fn occupy(info: &crate::conninfo::ConnInfo) -> Result<Connection> {
    let mut connection = Connection::open(info)?;
    for _ in 0..LOCK_TRIES {
        if connection.execute(LOCK)?.as_deref() == Some("1") {
            return Ok(connection);
        }
        // The backend of a driver that has just ended may not have noticed yet.
        std::thread::sleep(LOCK_PAUSE);
    }
    Err(Error::new(format!("database \"{}\" on {} is under load already", info.login.database, info.place()))
        .detail("another pgdyno-driver holds its lock; two at once would measure each other")
        .hint("wait until it has ended, or use another database"))
}

impl Run<'_> {
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
                self.is_stopped = true;
                Ok(())
            }
        }
    }

    fn take_turns(&mut self, order: &[usize], slice: Nanos, head: Nanos, pids: &[Vec<u32>]) -> Result<()> {
        let mut servers: Vec<ProcessTimes> = pids.iter().map(|pids| ProcessTimes::open(pids)).collect();
        for arm in order {
            let commands = self.commands;
            let mut is_stopped = false;
            let done = self.coordinator.take_turn(*arm, (0, slice, head), &mut servers, |_, now| {
                is_stopped |= is_told_to_stop(commands)?;
                Ok(if is_stopped { Watch::Stop } else { Watch::Until(now + LOOK_EVERY) })
            })?;
            self.phase.running[*arm] += done.end_ns - done.start_ns;
            (self.tell)(&Event::Slice(done))?;
            if is_stopped {
                self.is_stopped = true;
                break;
            }
        }
        (self.tell)(&Event::TurnsEnded)
    }

    fn run_one(&mut self, arm: usize, start: Nanos, length: Nanos, every: Nanos) -> Result<()> {
        let start = start.max(self.coordinator.now());
        let mut last = start;
        let Self { coordinator, commands, tell, phase, began, has_rate, is_stopped, .. } = self;
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
            match command {
                Ok(Ok(Command::Stop)) | Err(TryRecvError::Disconnected) => {
                    *is_stopped = true;
                    return Ok(Watch::Stop);
                }
                Ok(Ok(Command::Rate { rate })) => change_rate(coordinator, *has_rate, rate)?,
                Ok(Ok(Command::Phase { name })) => {
                    let next = PhaseSoFar::begin(&name, coordinator);
                    phase.running[arm] += next.began.saturating_sub(phase.began.max(start));
                    let mut ended = std::mem::replace(phase, next);
                    tell(&Event::Phase(ended.end(coordinator)))?;
                }
                Ok(Ok(other)) => return Err(unexpected(&other)),
                Ok(Err(error)) => return Err(error),
                Err(TryRecvError::Empty) => {}
            }
            Ok(Watch::Until((last + every).min(now + LOOK_EVERY)))
        })?;
        // A phase that begins with the run's last instant may begin after its end.
        self.phase.running[arm] += done.end_ns.saturating_sub(self.phase.began.max(done.start_ns));
        let chores_s = if self.is_stopped { 0.0 } else { self.finish(arm)? };
        (self.tell)(&Event::RunEnded { chores_s })
    }

    /// Does what is to be done after the arm's clients; returns how long that took.
    fn finish(&self, arm: usize) -> Result<f64> {
        let began = self.coordinator.now();
        run_stages(&self.coordinator.load.arms[arm].info, &self.chores[arm].after)?;
        Ok(seconds(self.coordinator.now() - began))
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

fn is_told_to_stop(commands: &Receiver<Result<Command>>) -> Result<bool> {
    match commands.try_recv() {
        Ok(Ok(Command::Stop)) | Err(TryRecvError::Disconnected) => Ok(true),
        Ok(Ok(other)) => Err(unexpected(&other)),
        Ok(Err(error)) => Err(error),
        Err(TryRecvError::Empty) => Ok(false),
    }
}

fn unexpected(command: &Command) -> Error {
    Error::new("a command came at the wrong time").detail(format!("{command:?} while turns are under way"))
}

impl PhaseSoFar {
    fn begin(name: &str, coordinator: &mut Coordinator) -> Self {
        // What was counted until now belongs to the phase before, which takes it when it ends.
        let load = &coordinator.load;
        let roles =
            || load.roles.iter().map(|role| Counts::new(role.statements.len(), role.clients)).collect();
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

    fn add(&mut self, counts: &[Vec<Counts>]) {
        for (own, other) in self.counts.iter_mut().flatten().zip(counts.iter().flatten()) {
            own.add(other);
        }
    }

    fn end(&mut self, coordinator: &mut Coordinator) -> Phase {
        let last = coordinator.take_counts();
        self.add(&last);
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
        }
    }
}
