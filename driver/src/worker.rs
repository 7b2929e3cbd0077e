//! One thread: an event loop over its share of every arm's connections.
//!
//! Transactions start only on the arm that has its turn. After the turn, the thread waits for running
//! transactions and then reports that it is drained. Only `Poller::wait` blocks.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use mio::{Events, Token, Waker};

use crate::answer_timeout::AnswerTimeout;
use crate::clock::{Clock, Nanos};
use crate::error::{Error, Result};
use crate::load::Load;
use crate::messages::{Channels, Command, Lost, Reconnected, Report, SharedCounts, Turn};
use crate::placement::ThreadLoad;
use crate::poller::{Poller, TIMER, WAKE};
use crate::processor;
use crate::random::Random;
use crate::reconnect;
use crate::record::Counts;
use crate::session::{Failure, Outcome, Session, State};
use crate::session_queue::SessionQueue;
use crate::transaction_log::TransactionLog;
use crate::workload::Next;

const READ_BYTES: usize = 64 << 10;
const EVENTS: usize = 256;
/// SQLSTATE of a connection lost without an error from the server.
const CONNECTION_FAILURE: &str = "08006";

/// A thread's state.
pub struct Worker {
    load: Arc<Load>,
    clock: Clock,
    poller: Poller,
    sessions: Vec<Session>,
    pauses: Vec<Random>,
    queue: SessionQueue,
    counts: SharedCounts,
    logs: Vec<Option<TransactionLog>>,
    channels: Channels,
    turn: Option<Turn>,
    in_flight: usize,
    answer_timeout: AnswerTimeout,
}

impl Worker {
    /// Creates a worker and registers its connections. The returned waker wakes up the event loop.
    pub fn new(
        load: Arc<Load>,
        clock: Clock,
        thread_load: ThreadLoad,
        counts: SharedCounts,
        channels: Channels,
    ) -> Result<(Self, Waker)> {
        let (poller, waker) = Poller::new()?;
        let clients: Vec<_> =
            thread_load.sessions.iter().map(|session| (session.arm, session.client_index)).collect();
        let queue = SessionQueue::new(thread_load.groups, thread_load.group_of, &clients, load.arms.len());
        let answer_timeout = AnswerTimeout::new(load.answer_limit, clock.now());
        let mut worker = Self {
            load,
            clock,
            poller,
            sessions: thread_load.sessions,
            pauses: thread_load.pauses,
            queue,
            counts,
            logs: thread_load.logs,
            channels,
            turn: None,
            in_flight: 0,
            answer_timeout,
        };
        for index in 0..worker.sessions.len() {
            let (session, load) = (&worker.sessions[index], &worker.load);
            worker.poller.register(index, session)?;
            let delay = load.ramp / load.clients.max(1) as u64 * session.client_index as u64;
            let pause = load.think_time.before_the_first(&mut worker.pauses[index]);
            worker.queue.push_at(index, delay + pause);
        }
        Ok((worker, waker))
    }

    /// Runs until `Command::Quit`; errors go to the coordinator.
    pub fn run(mut self, cpu: Option<usize>) {
        // A failed send means that the coordinator has exited: no report is needed.
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
            self.finish_round()?;
        }
    }

    /// Obeys the coordinator's commands. Returns false for `Command::Quit`.
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
                    self.queue.change_rate(&running, per_client);
                }
                Command::Reconnected(Reconnected { session, transport }) => {
                    let lost = &mut self.sessions[session];
                    lost.reconnect(transport?)?;
                    counts[lost.arm][lost.role].reconnects += 1;
                    self.poller.register(session, lost)?;
                    self.queue.push(session);
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
                    // The end of the stream follows the answers.
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

    /// Reads all received bytes of a session. Also returns the time of the last read.
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
            self.answer_timeout.check(now, &self.sessions, &self.load)?;
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
        self.queue.unblock_partners(index);
        let session = &mut self.sessions[index];
        if self.load.count.is_some_and(|count| session.committed() >= count) {
            session.finish();
        } else {
            self.queue_after_think_time(index, now);
        }
        Ok(())
    }

    /// Logs a session's failed transaction, if it would have counted.
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

    fn queue_after_think_time(&mut self, index: usize, now: Nanos) {
        match (self.load.think_time.after(&mut self.pauses[index]), self.turn) {
            (Some(pause), Some(turn)) => self.queue.push_at(index, turn.running(now) + pause),
            _ => self.queue.push(index),
        }
    }

    /// Starts every transaction that is due. Reads the clock for each: the time to send those before it is
    /// not part of its latency.
    fn start_due(&mut self, counts: &mut [Vec<Counts>]) -> Result<()> {
        let Some(turn) = self.turn else { return Ok(()) };
        let mut now = self.clock.now();
        while now < turn.end
            && let Some((index, intended)) = self.queue.next_due(turn.arm, turn.running(now))
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
                self.queue.block(index, intended);
                Ok(())
            }
            Ok(Next::Finished) => Ok(()),
            Err(error) => {
                self.in_flight += 1; // on_lost subtracts it again
                self.on_lost(index, counts, &error)
            }
        }
    }

    /// Checks the answer limit, reports a drained turn, and sets the timer for the next event.
    fn finish_round(&mut self) -> Result<()> {
        let now = self.clock.now();
        let mut wake = None;
        self.answer_timeout.check(now, &self.sessions, &self.load)?;
        if let Some(turn) = self.turn {
            let is_idle = self.in_flight == 0;
            if is_idle && (now >= turn.end || self.is_finished(turn.arm)) {
                self.turn = None;
                if let Some(log) = &mut self.logs[turn.arm] {
                    log.flush()?;
                }
                let _ = self.channels.reports.send(Report::Drained(turn.number));
            } else {
                let otherwise = if is_idle { turn.end } else { self.answer_timeout.next_check() };
                wake = Some(wake_at(&turn, now, self.queue.next_wake(turn.arm), otherwise));
            }
        }
        self.poller.set_timer(now, wake)
    }

    /// Whether all sessions have finished, or are blocked by finished clients.
    fn is_finished(&self, arm: usize) -> bool {
        self.sessions
            .iter()
            .enumerate()
            .filter(|(_, session)| session.arm == arm)
            .all(|(index, session)| session.state() == State::Finished || self.queue.is_blocked(index))
    }

    /// Handles a lost connection: its transaction is lost, and the run fails unless it reconnects.
    fn on_lost(&mut self, index: usize, counts: &mut [Vec<Counts>], why: &io::Error) -> Result<()> {
        let session = &mut self.sessions[index];
        let farewell = session.take_farewell();
        let code = farewell.as_ref().map_or(CONNECTION_FAILURE, |farewell| farewell.code.as_str());
        if session.is_in_flight() {
            self.in_flight -= 1;
            *counts[session.arm][session.role].errors.entry((code.into(), "")).or_default() += 1;
            self.log_failure(index, (code, ""), self.clock.now())?;
        } else {
            self.queue.remove(index);
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
            return Err(reconnect::connection_lost(&self.load.arms[session.arm], code, why));
        }
        let statements = session.statements(self.load.roles[session.role].statements.len());
        let (arm, role, client) = (session.arm, session.role, session.client_index);
        let lost = Lost { session: index, arm, role, client, statements };
        self.channels.lost.send(lost).map_err(|_| Error::new("the reconnecting thread has exited"))
    }
}

/// When to wake up: at the next start (`due`, on the arm's running clock) or at `otherwise`, if that is
/// earlier.
fn wake_at(turn: &Turn, now: Nanos, due: Option<Nanos>, otherwise: Nanos) -> Nanos {
    // After the turn nothing starts, not even what was due before: a wake-up for it would repeat forever.
    let due = due.map(|running| turn.clock(running)).filter(|at| now < turn.end && *at < turn.end);
    due.map_or(otherwise, |due| due.min(otherwise))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From 1000 to 2000 on the driver's clock; the arm has run for 500 before it.
    const TURN: Turn = Turn { number: 1, arm: 0, start: 1000, end: 2000, base: 500 };

    #[test]
    fn a_thread_wakes_up_for_the_next_start_if_that_comes_before_anything_else() {
        assert_eq!(wake_at(&TURN, 1100, Some(700), 2000), 1200);
        assert_eq!(wake_at(&TURN, 1100, Some(700), 1150), 1150);
        assert_eq!(wake_at(&TURN, 1100, None, 2000), 2000);
    }

    #[test]
    fn no_wake_up_is_set_for_what_cannot_start_in_this_turn() {
        assert_eq!(wake_at(&TURN, 1100, Some(1500), 3000), 3000); // due with the end
        assert_eq!(wake_at(&TURN, 2001, Some(1499), 3000), 3000); // was due right before the end, and missed
    }
}
