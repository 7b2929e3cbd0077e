//! One thread: an event loop over its share of every arm's connections.
//!
//! Only the arm whose turn it is starts transactions. When the turn is over the thread lets those under way
//! end, and reports that it is drained. Nothing in here waits but `Poller::wait`.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use mio::{Events, Token, Waker};

use crate::clock::{Clock, Nanos};
use crate::crew::Crew;
use crate::error::{Error, Result};
use crate::load::Load;
use crate::messages::{Channels, Command, Report, SharedCounts, Turn};
use crate::patience::Patience;
use crate::poller::{Poller, TIMER, WAKE};
use crate::processor;
use crate::random::Random;
use crate::reconnect::{self, Lost, Reconnected};
use crate::record::Counts;
use crate::roster::Roster;
use crate::session::{Failure, Outcome, Session, State};
use crate::transaction_log::TransactionLog;
use crate::workload::Next;

const READ_BYTES: usize = 64 << 10;
const EVENTS: usize = 256;
/// The SQLSTATE of a connection that ends without one.
const CONNECTION_FAILURE: &str = "08006";

/// A thread's state.
pub struct Worker {
    load: Arc<Load>,
    clock: Clock,
    poller: Poller,
    sessions: Vec<Session>,
    pauses: Vec<Random>,
    roster: Roster,
    counts: SharedCounts,
    logs: Vec<Option<TransactionLog>>,
    channels: Channels,
    turn: Option<Turn>,
    in_flight: usize,
    patience: Patience,
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
        let (poller, waker) = Poller::new()?;
        let clients: Vec<_> =
            crew.sessions.iter().map(|session| (session.arm, session.client_index)).collect();
        let roster = Roster::new(crew.groups, crew.group_of, &clients, load.arms.len());
        let patience = Patience::new(load.answer_limit, clock.now());
        let mut worker = Self {
            load,
            clock,
            poller,
            sessions: crew.sessions,
            pauses: crew.pauses,
            roster,
            counts,
            logs: crew.logs,
            channels,
            turn: None,
            in_flight: 0,
            patience,
        };
        for index in 0..worker.sessions.len() {
            let (session, load) = (&worker.sessions[index], &worker.load);
            worker.poller.register(index, session)?;
            let delay = load.ramp / load.clients.max(1) as u64 * session.client_index as u64;
            let pause = load.think_time.before_the_first(&mut worker.pauses[index]);
            worker.roster.enlist_at(index, delay + pause);
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
            self.poller.wait(&mut events)?;
            let now = self.clock.now();
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            for event in &events {
                match event.token() {
                    WAKE => {
                        if !self.obey(&mut counts, now)? {
                            return self.logs.iter_mut().flatten().try_for_each(TransactionLog::flush);
                        }
                    }
                    TIMER => self.poller.acknowledge_timer(),
                    Token(index) => {
                        let is_closed = event.is_read_closed() || event.is_error();
                        self.on_event((index, is_closed), &mut counts, now, &mut buffer)?;
                    }
                }
            }
            self.start_due(&mut counts)?;
            drop(counts);
            self.rest()?;
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
                    self.poller.register(session, lost)?;
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
            self.poller.unwatch_for_writing(index, session)?;
        }
        let was_in_flight = session.is_in_flight();
        let (received, now) = self.receive(index, is_closed, counts, now, buffer)?;
        match received {
            Err(error) => return self.on_lost(index, counts, &error),
            Ok(Err(error)) => return Err(error),
            Ok(Ok(Outcome::Pending | Outcome::Unread)) => {
                self.poller.watch_for_writing(index, &self.sessions[index])?;
            }
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

    /// Lets a session read what has arrived, however much. Returns when the last of it was read, too.
    fn receive(
        &mut self,
        index: usize,
        is_closed: bool,
        counts: &mut [Vec<Counts>],
        mut now: Nanos,
        buffer: &mut [u8],
    ) -> Result<(io::Result<Result<Outcome>>, Nanos)> {
        loop {
            let session = &mut self.sessions[index];
            let manner = self.load.manner(session.role);
            let counted = &mut counts[session.arm][session.role];
            match session.receive(manner, counted, (now, is_closed), buffer) {
                Ok(Ok(Outcome::Unread)) => {}
                received => return Ok((received, now)),
            }
            now = self.clock.now();
            self.patience.look(now, &self.sessions, &self.load)?;
        }
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
            Outcome::Committed if !session.is_counted() => {}
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
            Outcome::GivenUp(Failure { error, code, statement }) => {
                let given_up = self.channels.given_up.fetch_add(1, Ordering::Relaxed) + 1;
                if given_up > self.load.max_errors {
                    let limit = format!("more than {} transactions were given up", self.load.max_errors);
                    let detail = error.detail.iter().chain([&limit]).map(String::as_str).collect::<Vec<_>>();
                    let detail = detail.join("; ");
                    return Err(error.detail(detail));
                }
                self.log_failure(index, (&code, statement), now)?;
            }
            Outcome::Pending | Outcome::Unread => {}
        }
        self.roster.unblock_partners(index);
        let session = &mut self.sessions[index];
        if self.load.count.is_some_and(|count| session.committed() >= count) {
            session.finish();
        } else {
            self.rest_or_enlist(index, now);
        }
        Ok(())
    }

    /// Logs that a session's transaction was given up, if it would have counted.
    fn log_failure(&mut self, index: usize, cause: (&str, &str), now: Nanos) -> Result<()> {
        let session = &self.sessions[index];
        let ended = self.turn.map_or(session.intended, |turn| turn.running(now));
        let latency = ended.saturating_sub(session.intended);
        match &mut self.logs[session.arm] {
            Some(log) if session.is_counted() => {
                log.write_failed(session.client_index, session.committed(), cause, latency, now)
            }
            _ => Ok(()),
        }
    }

    /// Lets a session wait for its next transaction, after its think time.
    fn rest_or_enlist(&mut self, index: usize, now: Nanos) {
        match (self.load.think_time.after(&mut self.pauses[index]), self.turn) {
            (Some(pause), Some(turn)) => self.roster.enlist_at(index, turn.running(now) + pause),
            _ => self.roster.enlist(index),
        }
    }

    /// Starts every transaction that is due. Each looks at the clock: the time that those before it took to be
    /// sent is no latency of its own.
    fn start_due(&mut self, counts: &mut [Vec<Counts>]) -> Result<()> {
        let Some(turn) = self.turn else { return Ok(()) };
        let mut now = self.clock.now();
        while now < turn.end
            && let Some((index, intended)) = self.roster.next_due(turn.arm, turn.running(now))
        {
            self.start(index, intended, turn.running(now), counts, now)?;
            now = self.clock.now();
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
                self.poller.watch_for_writing(index, session)
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
    fn rest(&mut self) -> Result<()> {
        let now = self.clock.now();
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
                let otherwise = if is_idle { turn.end } else { self.patience.next_look() };
                wake = Some(wake_at(&turn, now, self.roster.next_wake(turn.arm), otherwise));
            }
        }
        self.poller.set_timer(now, wake)
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
            *counts[session.arm][session.role].errors.entry((code.into(), "")).or_default() += 1;
            self.log_failure(index, (code, ""), self.clock.now())?;
        } else {
            self.roster.remove(index);
        }
        let session = &mut self.sessions[index];
        self.poller.deregister(session)?;
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
        let (arm, role, client) = (session.arm, session.role, session.client_index);
        let lost = Lost { session: index, arm, role, client, statements };
        self.channels.lost.send(lost).map_err(|_| Error::new("nobody connects again any more"))
    }
}

/// When to wake up: at the next start, which is `due` on the arm's running clock, or `otherwise`.
fn wake_at(turn: &Turn, now: Nanos, due: Option<Nanos>, otherwise: Nanos) -> Nanos {
    // Nothing starts once the turn is over, not even what was due before: that would wake the thread for ever.
    let due = due.map(|running| turn.clock(running)).filter(|at| now < turn.end && *at < turn.end);
    due.map_or(otherwise, |due| due.min(otherwise))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From 1000 to 2000 on the driver's clock; the arm has run for 500 before.
    const TURN: Turn = Turn { number: 1, arm: 0, start: 1000, end: 2000, base: 500 };

    #[test]
    fn a_thread_wakes_up_for_the_next_start_if_that_comes_before_anything_else() {
        assert_eq!(wake_at(&TURN, 1100, Some(700), 2000), 1200);
        assert_eq!(wake_at(&TURN, 1100, Some(700), 1150), 1150);
        assert_eq!(wake_at(&TURN, 1100, None, 2000), 2000);
    }

    #[test]
    fn nobody_is_woken_up_for_what_cannot_start_in_this_turn_any_more() {
        assert_eq!(wake_at(&TURN, 1100, Some(1500), 3000), 3000); // due with the end
        assert_eq!(wake_at(&TURN, 2001, Some(1499), 3000), 3000); // was due right before the end, and missed
    }
}
