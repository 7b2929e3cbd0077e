//! Gives arms their turns: tells the threads, waits, reads processor times at the edges.
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
use crate::crew::Crew;
use crate::error::{Error, Result};
use crate::load::Load;
use crate::messages::{Channels, Command, Report, SharedCounts, Turn};
use crate::occupancy::Occupancy;
use crate::processor::{ProcessTimes, own_time};
use crate::reconnect;
use crate::record::Counts;
use crate::worker::Worker;

/// How long threads may take to start or to end.
const THREAD_LIMIT: Nanos = 30 * SECOND;
/// Whoever watches a turn, or its end, is asked this often: each look is a switch to another thread, which costs
/// tens of microseconds.
pub const LOOK_EVERY: Nanos = SECOND / 10;

/// One turn, as it went. Times are wall-clock nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Slice {
    /// Whose turn it was.
    pub arm: usize,
    /// When it began.
    pub start_ns: Nanos,
    /// When no more transactions were started.
    pub end_ns: Nanos,
    /// When the last transaction had ended.
    pub drained_ns: Nanos,
    /// Processor time that each arm's server used from the head's end until `end_ns`.
    pub server_cpu_ns: Vec<Nanos>,
    /// Processor time that this program used from `start_ns` until `drained_ns`.
    pub client_cpu_ns: Nanos,
}

/// A turn that is over, but whose transactions may still be under way.
pub struct Undrained {
    /// As far as it is known.
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

struct Crewman {
    commands: Sender<Command>,
    waker: Arc<Waker>,
    counts: SharedCounts,
    thread: JoinHandle<()>,
}

/// The threads at work, and whose turn it is.
pub struct Coordinator {
    /// The load that they issue.
    pub load: Arc<Load>,
    clock: Clock,
    crewmen: Vec<Crewman>,
    reports: Receiver<Report>,
    thread_times: Vec<ProcessTimes>,
    turns: u64,
    running: Vec<Nanos>,
    drain_limit: Nanos,
}

impl Coordinator {
    /// Starts one thread per crew, on `cpus` in turn if there are any.
    pub fn start(
        (load, occupancy): (Arc<Load>, &Arc<Occupancy>),
        clock: Clock,
        crews: Vec<Crew>,
        cpus: &[usize],
        drain_limit: Nanos,
    ) -> Result<Self> {
        let (report, reports) = mpsc::channel();
        let given_up = Arc::new(AtomicU64::new(0));
        let mut crewmen = Vec::new();
        for (index, crew) in crews.into_iter().enumerate() {
            let cpu = (!cpus.is_empty()).then(|| cpus[index % cpus.len()]);
            let channels = (report.clone(), given_up.clone());
            crewmen.push(start_thread((&load, occupancy), clock, crew, cpu, channels)?);
        }
        let running = vec![0; load.arms.len()];
        let mut coordinator =
            Self { load, clock, crewmen, reports, thread_times: Vec::new(), turns: 0, running, drain_limit };
        coordinator.await_start()?;
        Ok(coordinator)
    }

    fn await_start(&mut self) -> Result<()> {
        let deadline = self.clock.now() + THREAD_LIMIT;
        while self.thread_times.len() < self.crewmen.len() {
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

    /// Processor time that each thread has used.
    pub fn thread_times(&mut self) -> Vec<Nanos> {
        self.thread_times.iter_mut().map(ProcessTimes::read).collect()
    }

    /// Gives an arm its turn for `length` from `start`, which is now or later; after that it is to be drained.
    /// `watch` is asked now and then, at the latest at the instant that it returned last, whether to go on;
    /// `servers` are read at both edges of the counted part.
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
        self.tell(|| Command::Turn(turn))?;
        self.wait(start.saturating_add(head.min(length)), &mut drained)?;
        let before: Vec<Nanos> = servers.iter_mut().map(ProcessTimes::read).collect();
        let mut end = planned_end;
        loop {
            let watched = watch(self, self.clock.now())?;
            let now = self.clock.now();
            match watched {
                Watch::Stop if now < end => {
                    end = now;
                    self.tell(|| Command::EndAt(now))?;
                }
                _ => {}
            }
            if now >= end || drained == self.crewmen.len() {
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

    /// The turn of an arm that was stopped before it began.
    fn no_turn(&self, arm: usize, servers: usize, own_before: Nanos) -> Undrained {
        let now = self.clock.now();
        let server_cpu_ns = vec![0; servers];
        let slice =
            Slice { arm, start_ns: now, end_ns: now, drained_ns: now, server_cpu_ns, client_cpu_ns: 0 };
        Undrained { slice, drained: self.crewmen.len(), own_before }
    }

    /// Waits until no transaction of a turn is under way any more. `limit` is asked now and then: from when it names
    /// one, they have no longer than that.
    pub fn drain(&mut self, turn: Undrained, mut limit: impl FnMut() -> Option<Nanos>) -> Result<Slice> {
        let Undrained { mut slice, mut drained, own_before } = turn;
        let mut deadline = self.clock.now() + self.drain_limit;
        loop {
            let now = self.clock.now();
            if let Some(limit) = limit() {
                deadline = deadline.min(now + limit);
            }
            if drained == self.crewmen.len() {
                break;
            }
            if now >= deadline {
                return Err(self.not_drained(slice.arm, now - slice.end_ns));
            }
            self.wait(deadline.min(now + LOOK_EVERY), &mut drained)?;
        }
        slice.drained_ns = self.clock.now();
        slice.client_cpu_ns = own_time() - own_before;
        Ok(slice)
    }

    fn not_drained(&self, arm: usize, waited: Nanos) -> Error {
        let (name, waited_s) = (&self.load.arms[arm].name, waited as f64 / 1e9);
        let message = format!("transactions on {name} were still under way {waited_s:.0} s after its turn");
        Error::new(message).hint("does a lock or a stalled disk hold them? Look in pg_stat_activity")
    }

    /// Takes what was counted since the last call, `counts[arm][role]`, over all threads.
    pub fn take_counts(&mut self) -> Vec<Vec<Counts>> {
        let mut total = empty_counts(&self.load);
        for crewman in &self.crewmen {
            let fresh = empty_counts(&self.load);
            let taken =
                std::mem::replace(&mut *crewman.counts.lock().unwrap_or_else(PoisonError::into_inner), fresh);
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
        self.tell(|| Command::Rate { per_client, running: running.clone() })
    }

    /// Ends all threads and waits for them.
    pub fn finish(mut self) -> Result<()> {
        self.tell(|| Command::Quit)?;
        let deadline = self.clock.now() + THREAD_LIMIT;
        for crewman in self.crewmen.drain(..) {
            while !crewman.thread.is_finished() {
                if self.clock.now() > deadline {
                    return Err(Error::new("the driver's threads did not end within 30 s"));
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

    fn tell(&mut self, command: impl Fn() -> Command) -> Result<()> {
        for crewman in &self.crewmen {
            let is_told = crewman.commands.send(command()).is_ok() && crewman.waker.wake().is_ok();
            if !is_told {
                return Err(self.why_a_thread_ended());
            }
        }
        Ok(())
    }

    fn why_a_thread_ended(&self) -> Error {
        self.reports
            .try_iter()
            .find_map(|report| if let Report::Failed(error) = report { Some(error) } else { None })
            .unwrap_or_else(|| Error::new("a thread of the driver ended unexpectedly"))
    }

    /// Waits until an instant, or until all threads are drained because their clients have finished.
    fn wait(&mut self, then: Nanos, drained: &mut usize) -> Result<()> {
        while *drained < self.crewmen.len() {
            let now = self.clock.now();
            if now >= then {
                return Ok(());
            }
            match self.reports.recv_timeout(until(now, then)) {
                Ok(report) => self.take_report(report, drained)?,
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => return Err(self.why_a_thread_ended()),
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

/// What whoever watches a turn wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Be asked again at this instant.
    Until(Nanos),
    /// End the turn.
    Stop,
}

fn start_thread(
    (load, occupancy): (&Arc<Load>, &Arc<Occupancy>),
    clock: Clock,
    crew: Crew,
    cpu: Option<usize>,
    (reports, given_up): (Sender<Report>, Arc<AtomicU64>),
) -> Result<Crewman> {
    let counts: SharedCounts = Arc::new(Mutex::new(empty_counts(load)));
    let (commands, command_receiver) = mpsc::channel();
    let (lost, lost_receiver) = mpsc::channel();
    let panicked = reports.clone();
    let channels = Channels { commands: command_receiver, reports, lost, given_up };
    let (worker, waker) = Worker::new(load.clone(), clock, crew, counts.clone(), channels)?;
    let waker = Arc::new(waker);
    let thread = std::thread::spawn(move || {
        // The coordinator would wait for the reports of a thread that has panicked.
        if catch_unwind(AssertUnwindSafe(|| worker.run(cpu))).is_err() {
            let _ = panicked.send(Report::Failed(Error::new("a thread of the driver panicked")));
        }
    });
    if load.reconnects() {
        let (load, occupancy) = (load.clone(), occupancy.clone());
        let (commands, waker) = (commands.clone(), waker.clone());
        std::thread::spawn(move || reconnect::serve(load, occupancy, lost_receiver, commands, waker));
    }
    Ok(Crewman { commands, waker, counts, thread })
}

fn empty_counts(load: &Load) -> Vec<Vec<Counts>> {
    let roles = || load.roles.iter().map(|role| Counts::new(role.clients)).collect();
    load.arms.iter().map(|_| roles()).collect()
}
