//! One thread: an event loop over its share of every arm's connections.
//!
//! Only the arm whose turn it is starts transactions. When the turn is over the thread lets those under way
//! end, and reports that it is drained. Nothing in here waits but `Poll::poll`.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::clock::{Clock, Nanos};
use crate::error::{Error, Result};
use crate::load::Load;
use crate::messages::{Channels, Command, Report, SharedCounts, Turn};
use crate::patience::Patience;
use crate::processor;
use crate::reconnect::{self, Lost, Reconnected};
use crate::record::Counts;
use crate::roster::{Group, Roster};
use crate::session::{Outcome, Session, State};
use crate::timer::Timer;
use crate::transaction_log::TransactionLog;
use crate::workload::Next;

const WAKE: Token = Token(usize::MAX);
const TIMER: Token = Token(usize::MAX - 1);
const READ_BYTES: usize = 64 << 10;
const EVENTS: usize = 256;
/// The SQLSTATE of a connection that ends without one.
const CONNECTION_FAILURE: &str = "08006";

/// A thread's state.
pub struct Worker {
    load: Arc<Load>,
    clock: Clock,
    poll: Poll,
    timer: Timer,
    sessions: Vec<Session>,
    roster: Roster,
    counts: SharedCounts,
    logs: Vec<Option<TransactionLog>>,
    channels: Channels,
    turn: Option<Turn>,
    in_flight: usize,
    patience: Patience,
}

/// A thread's sessions, their groups, and where it logs.
pub struct Crew {
    /// The sessions of this thread.
    pub sessions: Vec<Session>,
    /// Index of each session's group.
    pub group_of: Vec<usize>,
    /// Their schedules.
    pub groups: Vec<Group>,
    /// Transaction logs by arm.
    pub logs: Vec<Option<TransactionLog>>,
}

impl Worker {
    /// Registers the crew's connections. The returned waker interrupts the event loop.
    pub fn new(
        load: Arc<Load>,
        clock: Clock,
        crew: Crew,
        counts: SharedCounts,
        channels: Channels,
    ) -> Result<(Self, Waker)> {
        let poll = Poll::new().map_err(|error| system(&error))?;
        let waker = Waker::new(poll.registry(), WAKE).map_err(|error| system(&error))?;
        let timer = Timer::new().map_err(|error| system(&error))?;
        poll.registry()
            .register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)
            .map_err(|error| system(&error))?;
        let arms = load.arms.len();
        let patience = Patience::new(load.answer_limit, clock.now());
        let mut worker = Self {
            load,
            clock,
            poll,
            timer,
            sessions: crew.sessions,
            roster: Roster::new(crew.groups, crew.group_of, arms),
            counts,
            logs: crew.logs,
            channels,
            turn: None,
            in_flight: 0,
            patience,
        };
        for index in 0..worker.sessions.len() {
            worker.register(index)?;
            let (session, load) = (&worker.sessions[index], &worker.load);
            let delay = load.ramp / load.clients.max(1) as u64 * session.client_index as u64;
            worker.roster.enlist_at(index, delay);
        }
        Ok((worker, waker))
    }

    /// Runs until it is told to quit; errors go to the coordinator.
    pub fn run(mut self, cpu: Option<usize>) {
        // A coordinator that has gone away has no use for reports.
        let result = cpu.map_or(Ok(()), processor::pin).and_then(|()| {
            let _ = self.channels.reports.send(Report::Started(processor::thread_id()));
            self.serve()
        });
        if let Err(error) = result {
            let _ = self.channels.reports.send(Report::Failed(error));
        }
    }

    fn serve(&mut self) -> Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        let mut buffer = vec![0; READ_BYTES];
        let counts = self.counts.clone();
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result.map_err(|error| system(&error))?,
            }
            let now = self.clock.now();
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            for event in &events {
                match event.token() {
                    WAKE => {
                        if !self.obey(&mut counts, now)? {
                            return self.logs.iter_mut().flatten().try_for_each(TransactionLog::flush);
                        }
                    }
                    TIMER => self.timer.acknowledge(),
                    Token(index) => {
                        let is_closed = event.is_read_closed() || event.is_error();
                        self.on_event((index, is_closed), &mut counts, now, &mut buffer)?;
                    }
                }
            }
            self.start_due(&mut counts, now)?;
            drop(counts);
            self.rest(now)?;
        }
    }

    /// Does what the coordinator has asked for. False if that is to quit.
    fn obey(&mut self, counts: &mut [Vec<Counts>], now: Nanos) -> Result<bool> {
        while let Ok(command) = self.channels.commands.try_recv() {
            match command {
                Command::Turn(turn) => self.turn = Some(turn),
                Command::EndAt(end) => {
                    if let Some(turn) = &mut self.turn {
                        turn.end = end;
                    }
                }
                Command::Rate { per_client, mut running } => {
                    if let Some(turn) = self.turn {
                        running[turn.arm] = turn.running(now);
                    }
                    self.roster.change_rate(&running, per_client);
                }
                Command::Reconnected(Reconnected { session, transport }) => {
                    let lost = &mut self.sessions[session];
                    lost.reconnect(transport?)?;
                    counts[lost.arm][lost.role].reconnects += 1;
                    self.register(session)?;
                    self.roster.enlist(session);
                }
                Command::Quit => return Ok(false),
            }
        }
        Ok(true)
    }

    fn on_event(
        &mut self,
        (index, is_closed): (usize, bool),
        counts: &mut [Vec<Counts>],
        now: Nanos,
        buffer: &mut [u8],
    ) -> Result<()> {
        let session = &mut self.sessions[index];
        if session.has_unwritten() {
            if let Err(error) = session.flush() {
                return self.on_lost(index, counts, &error);
            }
            if !self.sessions[index].has_unwritten() {
                self.change_interest(index, Interest::READABLE)?;
            }
        }
        let session = &mut self.sessions[index];
        let was_in_flight = session.is_in_flight();
        let manner = self.load.manner(session.role);
        let counted = &mut counts[session.arm][session.role];
        match session.receive(manner, counted, (now, is_closed), buffer) {
            Err(error) => return self.on_lost(index, counts, &error),
            Ok(Err(error)) => return Err(error),
            Ok(Ok(Outcome::Pending)) => self.watch_for_writing(index)?,
            Ok(Ok(outcome)) if was_in_flight => {
                self.on_end(index, outcome, counts, now)?;
                if is_closed {
                    // What ended the stream came behind the answers.
                    return self.on_event((index, true), counts, now, buffer);
                }
            }
            Ok(Ok(_)) => {}
        }
        if self.sessions[index].has_farewell() {
            return self.on_lost(index, counts, &io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    fn on_end(
        &mut self,
        index: usize,
        outcome: Outcome,
        counts: &mut [Vec<Counts>],
        now: Nanos,
    ) -> Result<()> {
        self.in_flight -= 1;
        let session = &mut self.sessions[index];
        match outcome {
            Outcome::Committed => {
                let counted = &mut counts[session.arm][session.role];
                let ended = self.turn.map_or(session.intended, |turn| turn.running(now));
                let latency = ended.saturating_sub(session.intended);
                counted.latencies.record(latency);
                counted.clients[session.client_index] += 1;
                counted.clients_ended[session.client_index] = ended;
                if let Some(log) = &mut self.logs[session.arm] {
                    log.write(session.client_index, session.committed(), latency, now)?;
                }
            }
            Outcome::GivenUp(error) => {
                let given_up = self.channels.given_up.fetch_add(1, Ordering::Relaxed) + 1;
                if given_up > self.load.max_errors {
                    let limit = format!("more than {} transactions were given up", self.load.max_errors);
                    let detail = error.detail.iter().chain([&limit]).map(String::as_str).collect::<Vec<_>>();
                    let detail = detail.join("; ");
                    return Err(error.detail(detail));
                }
            }
            Outcome::Pending => {}
        }
        self.roster.unblock();
        let session = &mut self.sessions[index];
        if self.load.count.is_some_and(|count| session.committed() >= count) {
            session.finish();
        } else {
            self.rest_or_enlist(index, now);
        }
        Ok(())
    }

    /// Lets a session wait for its next transaction, after its think time.
    fn rest_or_enlist(&mut self, index: usize, now: Nanos) {
        match (self.load.think_time, self.turn) {
            (think_time, Some(turn)) if think_time > 0 => {
                self.roster.enlist_at(index, turn.running(now) + think_time);
            }
            _ => self.roster.enlist(index),
        }
    }

    /// Starts every transaction that is due.
    fn start_due(&mut self, counts: &mut [Vec<Counts>], now: Nanos) -> Result<()> {
        let Some(turn) = self.turn.filter(|turn| now < turn.end) else { return Ok(()) };
        let running = turn.running(now);
        while let Some((index, intended)) = self.roster.next_due(turn.arm, running) {
            self.start(index, intended, running, counts, now)?;
        }
        Ok(())
    }

    fn start(
        &mut self,
        index: usize,
        intended: Nanos,
        running: Nanos,
        counts: &mut [Vec<Counts>],
        now: Nanos,
    ) -> Result<()> {
        let session = &mut self.sessions[index];
        session.intended = intended;
        let manner = self.load.manner(session.role);
        match session.begin(manner, now) {
            Ok(Next::Ready) => {
                self.in_flight += 1;
                if self.load.roles[session.role].is_open {
                    counts[session.arm][session.role].lags.record(running.saturating_sub(intended));
                }
                self.watch_for_writing(index)
            }
            Ok(Next::Blocked) => {
                self.roster.block(index, intended);
                Ok(())
            }
            Ok(Next::Finished) => Ok(()),
            Err(error) => {
                self.in_flight += 1; // on_lost takes it off again
                self.on_lost(index, counts, &error)
            }
        }
    }

    /// Sets the timer for what comes next, and reports when the turn is over.
    fn rest(&mut self, now: Nanos) -> Result<()> {
        let mut wake = None;
        self.patience.look(now, &self.sessions, &self.load)?;
        if let Some(turn) = self.turn {
            let is_idle = self.in_flight == 0;
            if is_idle && (now >= turn.end || self.is_finished(turn.arm)) {
                self.turn = None;
                if let Some(log) = &mut self.logs[turn.arm] {
                    log.flush()?;
                }
                let _ = self.channels.reports.send(Report::Drained(turn.number));
            } else {
                let due = self
                    .roster
                    .next_wake(turn.arm)
                    .map(|running| turn.clock(running))
                    .filter(|at| *at < turn.end);
                let otherwise = if is_idle { turn.end } else { self.patience.next_look() };
                wake = Some(due.map_or(otherwise, |due| if is_idle { due } else { due.min(otherwise) }));
            }
        }
        self.timer.set(now, wake).map_err(|error| system(&error))
    }

    /// Whether nothing can happen any more: those that wait for clients that have finished wait for ever.
    fn is_finished(&self, arm: usize) -> bool {
        self.sessions
            .iter()
            .enumerate()
            .filter(|(_, session)| session.arm == arm)
            .all(|(index, session)| session.state() == State::Finished || self.roster.is_blocked(index))
    }

    /// A connection broke: the transaction is lost, and the run with it unless it may connect again.
    fn on_lost(&mut self, index: usize, counts: &mut [Vec<Counts>], why: &io::Error) -> Result<()> {
        let session = &mut self.sessions[index];
        let farewell = session.take_farewell();
        let code = farewell.as_ref().map_or(CONNECTION_FAILURE, |farewell| farewell.code.as_str());
        if session.is_in_flight() {
            self.in_flight -= 1;
            *counts[session.arm][session.role].errors.entry(code.into()).or_default() += 1;
        } else {
            self.roster.remove(index);
        }
        if let Some(descriptor) = session.descriptor() {
            self.deregister(descriptor)?;
        }
        let session = &mut self.sessions[index];
        session.disconnect();
        if session.state() == State::Finished {
            return Ok(());
        }
        if !self.load.reconnects() {
            let why = farewell
                .as_ref()
                .map_or_else(|| reconnect::why_lost(why), |farewell| farewell.message.clone());
            return Err(reconnect::refused(&self.load.arms[session.arm], code, why));
        }
        let statements = session.statements(self.load.roles[session.role].statements.len());
        let lost = Lost { session: index, arm: session.arm, role: session.role, statements };
        self.channels.lost.send(lost).map_err(|_| Error::new("nobody connects again any more"))
    }

    fn watch_for_writing(&mut self, index: usize) -> Result<()> {
        if self.sessions[index].has_unwritten() {
            self.change_interest(index, Interest::READABLE | Interest::WRITABLE)?;
        }
        Ok(())
    }

    fn register(&mut self, index: usize) -> Result<()> {
        let Some(descriptor) = self.sessions[index].descriptor() else { return Ok(()) };
        self.poll
            .registry()
            .register(&mut SourceFd(&descriptor), Token(index), Interest::READABLE)
            .map_err(|error| system(&error))
    }

    fn change_interest(&mut self, index: usize, interest: Interest) -> Result<()> {
        let Some(descriptor) = self.sessions[index].descriptor() else { return Ok(()) };
        self.poll
            .registry()
            .reregister(&mut SourceFd(&descriptor), Token(index), interest)
            .map_err(|error| system(&error))
    }

    fn deregister(&mut self, descriptor: RawFd) -> Result<()> {
        self.poll.registry().deregister(&mut SourceFd(&descriptor)).map_err(|error| system(&error))
    }
}

fn system(error: &io::Error) -> Error {
    Error::new(format!("could not set up an event loop: {error}"))
        .hint("is the limit of open files (ulimit -n) above the number of connections?")
}
