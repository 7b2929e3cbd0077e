//! Runs arms in turn: commands the threads, waits, and reads CPU times at the start and end.
//!
//! ```text
//! start        head           end        drained
//!   |  (not counted) | counted  |  (ending) |
//! ```
//!
//! Every wait has a limit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use mio::Waker;
use serde::Serialize;

use crate::clock::{Clock, Nanos, SECOND, until};
use crate::database_locks::DatabaseLocks;
use crate::error::{Error, Result};
use crate::load::Load;
use crate::messages::{Channels, Command, Report, SharedCounts, Turn};
use crate::placement::ThreadLoad;
use crate::processor::{ProcessTimes, own_time};
use crate::reconnect;
use crate::record::Counts;
use crate::worker::Worker;

/// Time limit on the start and on the exit of threads.
const THREAD_LIMIT: Nanos = 30 * SECOND;
/// How often a turn and its end are polled: each poll is a context switch, which costs tens of microseconds.
pub const POLL_INTERVAL: Nanos = SECOND / 10;

/// A completed turn. Times are wall-clock nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Slice {
    /// The arm that ran.
    pub arm: usize,
    /// When it began.
    pub start_ns: Nanos,
    /// When no more transactions were started.
    pub end_ns: Nanos,
    /// When the last transaction ended.
    pub drained_ns: Nanos,
    /// CPU time of each arm's server from the end of the head until `end_ns`.
    pub server_cpu_ns: Vec<Nanos>,
    /// CPU time of this process from `start_ns` until `drained_ns`.
    pub client_cpu_ns: Nanos,
}

/// A turn that has ended, with transactions possibly still in progress.
pub struct Undrained {
    slice: Slice,
    drained: usize,
    own_before: Nanos,
}

impl Undrained {
    /// When no more transactions were started.
    pub fn end(&self) -> Nanos {
        self.slice.end_ns
    }
}

struct WorkerThread {
    commands: Sender<Command>,
    waker: Arc<Waker>,
    counts: SharedCounts,
    thread: JoinHandle<()>,
}

/// The worker threads and the state of the turns.
pub struct Coordinator {
    /// The load.
    pub load: Arc<Load>,
    clock: Clock,
    started: Vec<WorkerThread>,
    reports: Receiver<Report>,
    thread_times: Vec<ProcessTimes>,
    turns: u64,
    running: Vec<Nanos>,
    drain_limit: Nanos,
}

impl Coordinator {
    /// Starts one thread per `ThreadLoad`, pinned round-robin to `cpus` if any are given.
    pub fn start(
        (load, locks): (Arc<Load>, &Arc<DatabaseLocks>),
        clock: Clock,
        thread_loads: Vec<ThreadLoad>,
        cpus: &[usize],
        drain_limit: Nanos,
    ) -> Result<Self> {
        let (report, reports) = mpsc::channel();
        let given_up = Arc::new(AtomicU64::new(0));
        let mut started = Vec::new();
        for (index, thread_load) in thread_loads.into_iter().enumerate() {
            let cpu = (!cpus.is_empty()).then(|| cpus[index % cpus.len()]);
            let channels = (report.clone(), given_up.clone());
            started.push(start_thread((&load, locks), clock, thread_load, cpu, channels)?);
        }
        let running = vec![0; load.arms.len()];
        let mut coordinator =
            Self { load, clock, started, reports, thread_times: Vec::new(), turns: 0, running, drain_limit };
        coordinator.await_start()?;
        Ok(coordinator)
    }

    fn await_start(&mut self) -> Result<()> {
        let deadline = self.clock.now() + THREAD_LIMIT;
        while self.thread_times.len() < self.started.len() {
            match self.reports.recv_timeout(until(self.clock.now(), deadline)) {
                Ok(Report::Started(id)) => self.thread_times.push(ProcessTimes::open_threads(&[id])),
                Ok(Report::Failed(error)) => return Err(error),
                Ok(Report::Drained(_)) => {}
                Err(_) => return Err(Error::new("the driver's threads did not start within 30 s")),
            }
        }
        Ok(())
    }

    /// The time now.
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// CPU time of each thread.
    pub fn thread_times(&mut self) -> Vec<Nanos> {
        self.thread_times.iter_mut().map(ProcessTimes::read).collect()
    }

    /// Runs an arm for `length` from `start` (now or later). The caller then drains the turn. `watch` decides
    /// whether to continue; it is called periodically, at the latest at the instant it returned last. The CPU
    /// times of `servers` are read at the start and end of the counted part.
    pub fn take_turn(
        &mut self,
        arm: usize,
        (start, length, head): (Nanos, Nanos, Nanos),
        servers: &mut [ProcessTimes],
        mut watch: impl FnMut(&mut Self, Nanos) -> Result<Watch>,
    ) -> Result<Undrained> {
        let own_before = own_time();
        let planned_end = start.saturating_add(length);
        self.turns += 1;
        let turn = Turn { number: self.turns, arm, start, end: planned_end, base: self.running[arm] };
        let mut drained = 0;
        while self.clock.now() < start {
            match watch(self, self.clock.now())? {
                Watch::Stop => return Ok(self.no_turn(arm, servers.len(), own_before)),
                Watch::Until(next) => self.wait(next.min(start), &mut drained)?,
            }
        }
        self.command(|| Command::Turn(turn))?;
        self.wait(start.saturating_add(head.min(length)), &mut drained)?;
        let before: Vec<Nanos> = servers.iter_mut().map(ProcessTimes::read).collect();
        let mut end = planned_end;
        loop {
            let watched = watch(self, self.clock.now())?;
            let now = self.clock.now();
            match watched {
                Watch::Stop if now < end => {
                    end = now;
                    self.command(|| Command::EndAt(now))?;
                }
                _ => {}
            }
            if now >= end || drained == self.started.len() {
                break;
            }
            let next = if let Watch::Until(next) = watched { next.min(end) } else { end };
            self.wait(next, &mut drained)?;
        }
        end = end.min(self.clock.now());
        let after: Vec<Nanos> = servers.iter_mut().map(ProcessTimes::read).collect();
        self.running[arm] += end - start;
        let server_cpu_ns = after.iter().zip(&before).map(|(after, before)| after - before).collect();
        let slice =
            Slice { arm, start_ns: start, end_ns: end, drained_ns: end, server_cpu_ns, client_cpu_ns: 0 };
        Ok(Undrained { slice, drained, own_before })
    }

    /// The empty turn of an arm stopped before its start.
    fn no_turn(&self, arm: usize, servers: usize, own_before: Nanos) -> Undrained {
        let now = self.clock.now();
        let server_cpu_ns = vec![0; servers];
        let slice =
            Slice { arm, start_ns: now, end_ns: now, drained_ns: now, server_cpu_ns, client_cpu_ns: 0 };
        Undrained { slice, drained: self.started.len(), own_before }
    }

    /// Waits until all transactions of a turn have ended. `limit` is called periodically; a limit that it
    /// returns applies from that call on.
    pub fn drain(&mut self, turn: Undrained, mut limit: impl FnMut() -> Option<Nanos>) -> Result<Slice> {
        let Undrained { mut slice, mut drained, own_before } = turn;
        let mut deadline = self.clock.now() + self.drain_limit;
        loop {
            let now = self.clock.now();
            if let Some(limit) = limit() {
                deadline = deadline.min(now + limit);
            }
            if drained == self.started.len() {
                break;
            }
            if now >= deadline {
                return Err(self.not_drained(slice.arm, now - slice.end_ns));
            }
            self.wait(deadline.min(now + POLL_INTERVAL), &mut drained)?;
        }
        slice.drained_ns = self.clock.now();
        slice.client_cpu_ns = own_time() - own_before;
        Ok(slice)
    }

    fn not_drained(&self, arm: usize, waited: Nanos) -> Error {
        let (name, waited_s) = (&self.load.arms[arm].name, waited as f64 / 1e9);
        let message = format!("transactions on {name} were still running {waited_s:.0} s after its turn");
        Error::new(message).hint("check pg_stat_activity for lock waits or stalled I/O")
    }

    /// Takes the counts of all threads since the last call, as `counts[arm][role]`.
    pub fn take_counts(&mut self) -> Vec<Vec<Counts>> {
        let mut total = empty_counts(&self.load);
        for worker in &self.started {
            let fresh = empty_counts(&self.load);
            let taken =
                std::mem::replace(&mut *worker.counts.lock().unwrap_or_else(PoisonError::into_inner), fresh);
            for (own, other) in total.iter_mut().flatten().zip(taken.iter().flatten()) {
                own.add(other);
            }
        }
        total
    }

    /// Changes the rate of open loops, in transactions per second over all clients of an arm.
    pub fn change_rate(&mut self, rate: f64) -> Result<()> {
        let per_client = rate / self.load.clients.max(1) as f64;
        let running = self.running.clone();
        self.command(|| Command::Rate { per_client, running: running.clone() })
    }

    /// Stops all threads and waits for their exit.
    pub fn finish(mut self) -> Result<()> {
        self.command(|| Command::Quit)?;
        let deadline = self.clock.now() + THREAD_LIMIT;
        for worker in self.started.drain(..) {
            while !worker.thread.is_finished() {
                if self.clock.now() > deadline {
                    return Err(Error::new("the driver's threads did not exit within 30 s"));
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        match self.reports.try_iter().find_map(|report| match report {
            Report::Failed(error) => Some(error),
            _ => None,
        }) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn command(&mut self, command: impl Fn() -> Command) -> Result<()> {
        for worker in &self.started {
            let is_sent = worker.commands.send(command()).is_ok() && worker.waker.wake().is_ok();
            if !is_sent {
                return Err(self.thread_failure());
            }
        }
        Ok(())
    }

    /// The error reported by a thread that has exited.
    fn thread_failure(&self) -> Error {
        self.reports
            .try_iter()
            .find_map(|report| if let Report::Failed(error) = report { Some(error) } else { None })
            .unwrap_or_else(|| Error::new("a thread of the driver exited unexpectedly"))
    }

    /// Waits until `then`, or until all threads are drained because their clients have finished.
    fn wait(&mut self, then: Nanos, drained: &mut usize) -> Result<()> {
        while *drained < self.started.len() {
            let now = self.clock.now();
            if now >= then {
                return Ok(());
            }
            match self.reports.recv_timeout(until(now, then)) {
                Ok(report) => self.take_report(report, drained)?,
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => return Err(self.thread_failure()),
            }
        }
        Ok(())
    }

    fn take_report(&self, report: Report, drained: &mut usize) -> Result<()> {
        match report {
            Report::Drained(turn) if turn == self.turns => *drained += 1,
            Report::Drained(_) | Report::Started(_) => {}
            Report::Failed(error) => return Err(error),
        }
        Ok(())
    }
}

/// The decision of a turn's `watch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Continue, and call again at this instant.
    Until(Nanos),
    /// End the turn.
    Stop,
}

fn start_thread(
    (load, locks): (&Arc<Load>, &Arc<DatabaseLocks>),
    clock: Clock,
    thread_load: ThreadLoad,
    cpu: Option<usize>,
    (reports, given_up): (Sender<Report>, Arc<AtomicU64>),
) -> Result<WorkerThread> {
    let counts: SharedCounts = Arc::new(Mutex::new(empty_counts(load)));
    let (commands, command_receiver) = mpsc::channel();
    let (lost, lost_receiver) = mpsc::channel();
    let panicked = reports.clone();
    let channels = Channels { commands: command_receiver, reports, lost, given_up };
    let (worker, waker) = Worker::new(load.clone(), clock, thread_load, counts.clone(), channels)?;
    let waker = Arc::new(waker);
    let thread = std::thread::spawn(move || {
        // Without this report the coordinator would wait for a panicked thread.
        if catch_unwind(AssertUnwindSafe(|| worker.run(cpu))).is_err() {
            let _ = panicked.send(Report::Failed(Error::new("a thread of the driver panicked")));
        }
    });
    if load.reconnects() {
        let (load, locks) = (load.clone(), locks.clone());
        let (commands, waker) = (commands.clone(), waker.clone());
        std::thread::spawn(move || reconnect::serve(load, locks, lost_receiver, commands, waker));
    }
    Ok(WorkerThread { commands, waker, counts, thread })
}

fn empty_counts(load: &Load) -> Vec<Vec<Counts>> {
    let roles = || load.roles.iter().map(|role| Counts::new(role.clients)).collect();
    load.arms.iter().map(|_| roles()).collect()
}
