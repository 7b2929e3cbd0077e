//! One client and its connection: a state machine that takes bytes and times, and never blocks.
//!
//! ```text
//! Idle ─begin→ Running ─last answer→ Idle            (committed)
//!                 └─error→ RollingBack ─→ Running    (retried, if the error permits it)
//!                                      └→ Idle       (given up)
//! any ─connection lost→ Lost ─reconnected→ Idle
//! ```

use std::io;
use std::ops::Range;
use std::os::fd::RawFd;

use crate::clock::Nanos;
use crate::error::{Error, Result};
use crate::load::Manner;
use crate::protocol::answer::{affected, first_integer};
use crate::protocol::frames::Frames;
use crate::protocol::request::{Mode, write_call, write_pipeline, write_text};
use crate::protocol::server_error::ServerError;
use crate::record::Counts;
use crate::transport::Transport;
use crate::wire::Wire;
use crate::workload::{Client, Next, StatementId, Transaction};

/// Maximum number of consecutive reads; then the caller checks the answer limit.
const READS_AT_ONCE: usize = 256;

/// Maximum number of attempts per transaction.
const MAX_TRIES: u32 = 10;

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Between transactions.
    Idle,
    /// Waiting for answers to a transaction.
    Running,
    /// Waiting for the end of a ROLLBACK.
    RollingBack,
    /// Without a connection.
    Lost,
    /// The client has finished.
    Finished,
}

/// The result of reading.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// More answers are expected.
    Pending,
    /// More bytes may be available than one call reads.
    Unread,
    /// The transaction was committed.
    Committed,
    /// The transaction was given up with this error.
    GivenUp(Failure),
}

/// Why a transaction was given up.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    /// The error.
    pub error: Error,
    /// Its SQLSTATE.
    pub code: String,
    /// The name of the failed statement.
    pub statement: &'static str,
}

/// The progress of one attempt at a transaction.
#[derive(Default)]
struct Attempt {
    /// Index of the current call.
    call: usize,
    /// Number of calls completed after the expected `ReadyForQuery` messages.
    calls_expected: usize,
    /// Number of `ReadyForQuery` messages still expected.
    ends_expected: usize,
    sent: Nanos,
    /// Rows of the current call so far.
    rows_of_call: u64,
    /// First column of the current call's first row.
    value: Option<i64>,
    rows_of_last_call: u64,
    rows: u64,
    error: Option<ServerError>,
}

/// One client and its connection.
pub struct Session {
    /// Index of its arm.
    pub arm: usize,
    /// Index of its role.
    pub role: usize,
    /// Index within its role, over all threads.
    pub client_index: usize,
    /// The intended start of its transaction, on the arm's running clock.
    pub intended: Nanos,
    client: Box<dyn Client>,
    wire: Wire,
    frames: Frames,
    transaction: Transaction,
    state: State,
    attempt: Attempt,
    farewell: Option<ServerError>,
    tries: u32,
    committed: u64,
}

impl Session {
    /// Creates a session and makes its connection non-blocking.
    pub fn new(
        (arm, role, client_index): (usize, usize, usize),
        client: Box<dyn Client>,
        transport: Transport,
    ) -> Result<Self> {
        let mut session = Self {
            arm,
            role,
            client_index,
            intended: 0,
            client,
            wire: Wire::default(),
            frames: Frames::default(),
            transaction: Transaction::default(),
            state: State::Lost,
            attempt: Attempt::default(),
            farewell: None,
            tries: 0,
            committed: 0,
        };
        session.reconnect(transport)?;
        Ok(session)
    }

    /// Replaces the connection.
    pub fn reconnect(&mut self, transport: Transport) -> Result<()> {
        self.wire.connect(transport)?;
        self.frames = Frames::default();
        self.attempt.ends_expected = 0;
        self.farewell = None;
        self.state = State::Idle;
        Ok(())
    }

    /// Drops the connection. A finished session stays finished: it needs none.
    pub fn disconnect(&mut self) {
        self.wire.disconnect();
        if self.state != State::Finished {
            self.state = State::Lost;
        }
    }

    /// Whether the server sent an error between transactions: it is about to close the connection.
    pub fn has_farewell(&self) -> bool {
        self.farewell.is_some()
    }

    /// Takes the error that announced the closing of the connection, if any. A write may fail before that
    /// error was read, so received bytes are read first.
    pub fn take_farewell(&mut self) -> Option<ServerError> {
        self.read_farewell();
        self.farewell.take().or_else(|| self.attempt.error.take().filter(|error| error.is_fatal))
    }

    fn read_farewell(&mut self) {
        let rest = self.wire.rest();
        let fed = self.frames.feed(&rest, |tag, body| {
            let error = (tag == b'E').then(|| ServerError::parse(body));
            self.farewell = error.filter(|error| error.is_fatal).or_else(|| self.farewell.take());
            Ok(())
        });
        drop(fed); // the connection is lost already: errors in its bytes do not matter
    }

    /// Which of its role's `all` statements to prepare on its connection.
    pub fn statements(&self, all: usize) -> Range<StatementId> {
        self.client.statements(all)
    }

    /// Whether an answer has been pending since before `then`.
    pub fn is_unanswered_since(&self, then: Nanos) -> bool {
        self.is_in_flight() && self.attempt.sent < then
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether a transaction is in progress.
    pub fn is_in_flight(&self) -> bool {
        matches!(self.state, State::Running | State::RollingBack)
    }

    /// Whether its transaction counts.
    pub fn is_counted(&self) -> bool {
        self.client.is_counted()
    }

    /// The number of committed, counted transactions.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// The socket, if it is connected.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.wire.descriptor()
    }

    /// Whether there are unwritten bytes.
    pub fn has_unwritten(&self) -> bool {
        self.wire.has_unwritten()
    }

    /// Gets the client's next transaction, if it is ready, and starts sending it.
    pub fn begin(&mut self, manner: Manner, now: Nanos) -> io::Result<Next> {
        self.transaction.clear();
        let next = self.client.next(&mut self.transaction);
        match next {
            Next::Ready => {
                self.tries = 1;
                self.write_from_start(manner, now);
                self.flush()?;
            }
            Next::Finished => self.state = State::Finished,
            Next::Blocked => {}
        }
        Ok(next)
    }

    /// Marks the session as finished.
    pub fn finish(&mut self) {
        self.state = State::Finished;
    }

    /// Reads received bytes and advances the transaction. `buffer` is scratch space.
    ///
    /// The outer `io::Error` means a lost connection, the inner error a protocol violation. With `is_closed`,
    /// the stream is known to be closed and must be read to its end: no further event will report that.
    pub fn receive(
        &mut self,
        manner: Manner,
        counts: &mut Counts,
        (now, is_closed): (Nanos, bool),
        buffer: &mut [u8],
    ) -> io::Result<Result<Outcome>> {
        for _ in 0..READS_AT_ONCE {
            let Some(arrived) = self.wire.read(buffer)? else { return Ok(Ok(Outcome::Pending)) };
            let is_emptied = arrived.is_all && !is_closed;
            match self.feed(manner, counts, now, &buffer[..arrived.bytes]) {
                Ok(Fed::Waiting) if is_emptied => return Ok(Ok(Outcome::Pending)),
                Ok(Fed::Waiting) => {}
                Ok(Fed::Send) => {
                    self.flush()?;
                    if is_emptied {
                        return Ok(Ok(Outcome::Pending)); // the answer makes the socket readable again
                    }
                }
                Ok(Fed::Ended(outcome)) => return Ok(Ok(outcome)),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(Outcome::Unread))
    }

    /// Writes unwritten bytes until the socket would block.
    pub fn flush(&mut self) -> io::Result<()> {
        self.wire.flush()
    }

    fn write_from_start(&mut self, manner: Manner, now: Nanos) {
        self.state = State::Running;
        self.attempt = Attempt::default();
        if manner.mode == Mode::Pipelined {
            self.attempt.sent = now;
            self.attempt.calls_expected = self.transaction.calls().len();
            self.attempt.ends_expected =
                write_pipeline(&mut self.wire.outbox, manner.statements, &self.transaction);
        } else {
            self.write_next_call(manner, now);
        }
    }

    fn write_next_call(&mut self, manner: Manner, now: Nanos) {
        let call = &self.transaction.calls()[self.attempt.call];
        self.attempt.sent = now;
        self.attempt.calls_expected = self.attempt.call + 1;
        self.attempt.ends_expected = 1;
        write_call(&mut self.wire.outbox, manner.mode, manner.statements, &self.transaction, call);
    }

    fn feed(&mut self, manner: Manner, counts: &mut Counts, now: Nanos, bytes: &[u8]) -> Result<Fed> {
        let mut frames = std::mem::take(&mut self.frames);
        let mut is_ready = false;
        let result = frames.feed(bytes, |tag, body| {
            is_ready |= self.take(manner, counts, now, (tag, body))?;
            Ok(())
        });
        self.frames = frames;
        result?;
        if is_ready { self.advance(manner, counts, now) } else { Ok(Fed::Waiting) }
    }

    /// Takes one message. Returns true if it was the last expected one.
    fn take(
        &mut self,
        manner: Manner,
        counts: &mut Counts,
        now: Nanos,
        (tag, body): (u8, &[u8]),
    ) -> Result<bool> {
        match tag {
            b'D' => {
                if self.attempt.rows_of_call == 0 {
                    self.attempt.value = first_integer(body);
                    self.transaction.receive(self.attempt.call, body);
                }
                self.attempt.rows_of_call += 1;
            }
            b'C' => self.complete_call(manner, counts, now, body),
            // An error between transactions: the server is about to close the connection.
            b'E' if self.attempt.ends_expected == 0 => self.farewell = Some(ServerError::parse(body)),
            b'E' => {
                let error = ServerError::parse(body);
                // The first error counts, unless a fatal one follows.
                if self.attempt.error.is_none() || error.is_fatal {
                    self.attempt.error = Some(error);
                }
            }
            b'Z' => {
                self.attempt.ends_expected = self.attempt.ends_expected.saturating_sub(1);
                return Ok(self.attempt.ends_expected == 0 && self.is_in_flight());
            }
            // Answers to Parse, Bind and Describe, notices, parameter changes, notifications, empty query.
            b'1' | b'2' | b'T' | b'n' | b't' | b'N' | b'S' | b'A' | b'I' => {}
            other => {
                let message = format!("unexpected message type \"{}\" from the server", other as char);
                return Err(Error::new(message).detail("no statement of a workload has such an answer"));
            }
        }
        Ok(false)
    }

    fn complete_call(&mut self, manner: Manner, counts: &mut Counts, now: Nanos, tag: &[u8]) {
        if self.attempt.rows_of_call == 0 {
            self.transaction.receive(self.attempt.call, &[]); // clears the value of an earlier attempt
        }
        let rows = std::mem::take(&mut self.attempt.rows_of_call).max(affected(tag));
        let value = self.attempt.value.take();
        let Some(call) = self.transaction.calls().get(self.attempt.call) else { return };
        if self.state == State::RollingBack {
            return;
        }
        let name = manner.statements[call.statement].name;
        counts.statements.entry(name).or_default().record(now.saturating_sub(self.attempt.sent));
        if call.wants_value {
            self.client.receive(call.statement, value);
        }
        self.attempt.rows_of_last_call = rows;
        self.attempt.rows += rows;
        self.attempt.call += 1;
    }

    /// Continues after the expected `ReadyForQuery`.
    fn advance(&mut self, manner: Manner, counts: &mut Counts, now: Nanos) -> Result<Fed> {
        if self.state == State::RollingBack {
            return Ok(self.after_rollback(manner, counts, now));
        }
        if let Some(error) = &self.attempt.error {
            if error.is_fatal {
                return Ok(Fed::Waiting); // the server is about to close the connection
            }
            self.state = State::RollingBack;
            self.attempt.sent = now;
            self.attempt.ends_expected = 1;
            write_text(&mut self.wire.outbox, "ROLLBACK");
            return Ok(Fed::Send);
        }
        let Attempt { call, calls_expected, .. } = self.attempt;
        if call != calls_expected {
            return Err(Error::new("the server sent ReadyForQuery before all statements were complete")
                .detail(format!("statements completed: {call} of {calls_expected}")));
        }
        if manner.mode != Mode::Pipelined && call < self.transaction.calls().len() {
            self.write_next_call(manner, now);
            return Ok(Fed::Send);
        }
        self.state = State::Idle;
        if self.is_counted() {
            self.committed += 1;
            counts.rows += self.attempt.rows;
        }
        self.client.committed(self.attempt.rows_of_last_call);
        Ok(Fed::Ended(Outcome::Committed))
    }

    fn after_rollback(&mut self, manner: Manner, counts: &mut Counts, now: Nanos) -> Fed {
        let error = self.attempt.error.take().unwrap_or_default();
        if manner.retried.contains(&error.code) && self.tries < MAX_TRIES {
            self.tries += 1;
            *counts.retries.entry(error.code).or_default() += 1;
            self.write_from_start(manner, now);
            return Fed::Send;
        }
        self.state = State::Idle;
        let call = self.transaction.calls().get(self.attempt.call);
        let statement = call.map_or("", |call| manner.statements[call.statement].name);
        let code = error.code.clone();
        *counts.errors.entry((code.clone(), statement)).or_default() += 1;
        let named = if statement.is_empty() { "a transaction" } else { statement };
        let error = error.while_using_tables(&format!("run {named}"));
        Fed::Ended(Outcome::GivenUp(Failure { error, code, statement }))
    }
}

enum Fed {
    Waiting,
    Send,
    Ended(Outcome),
}
