//! One connection at work: a state machine that is fed with bytes and instants and never waits.
//!
//! ```text
//! Idle ─begin→ Running ─last answer→ Idle            (committed)
//!                 └─error→ RollingBack ─→ Running    (tried again, if the error permits it)
//!                                      └→ Idle       (given up)
//! any ─connection broken→ Lost ─connected again→ Idle
//! ```

use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};

use crate::clock::Nanos;
use crate::error::{Error, Result};
use crate::load::Manner;
use crate::protocol::answer::{affected, first_integer};
use crate::protocol::frames::Frames;
use crate::protocol::request::{Mode, write_call, write_pipeline, write_text};
use crate::protocol::server_error::ServerError;
use crate::record::Counts;
use crate::transport::Transport;
use crate::workload::{Client, Next, StatementId, Transaction};

/// After so many tries a transaction is given up.
const MAX_TRIES: u32 = 10;

/// What the state machine is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Between transactions.
    Idle,
    /// Waiting for answers of a transaction.
    Running,
    /// Waiting for the end of a ROLLBACK.
    RollingBack,
    /// Without a connection.
    Lost,
    /// Its client has nothing more to do.
    Finished,
}

/// What became of the bytes that were fed.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// More answers are to come.
    Pending,
    /// The transaction was committed.
    Committed,
    /// The transaction was given up with this error.
    GivenUp(Error),
}

/// One client and its connection.
pub struct Session {
    /// Which arm, role and client of that role this is.
    pub arm: usize,
    /// Index of its role.
    pub role: usize,
    /// Index within its role, over all threads.
    pub client_index: usize,
    /// When its transaction was intended to start, on the arm's running clock.
    pub intended: Nanos,
    client: Box<dyn Client>,
    transport: Option<Transport>,
    frames: Frames,
    outbox: Vec<u8>,
    written: usize,
    transaction: Transaction,
    state: State,
    call: usize,
    ends_expected: usize,
    sent: Nanos,
    rows_of_call: u64,
    rows: u64,
    value: Option<i64>,
    calls_expected: usize,
    error: Option<ServerError>,
    farewell: Option<ServerError>,
    tries: u32,
    committed: u64,
}

impl Session {
    /// Puts a client on a connection, which becomes non-blocking.
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
            transport: None,
            frames: Frames::default(),
            outbox: Vec::new(),
            written: 0,
            transaction: Transaction::default(),
            state: State::Lost,
            call: 0,
            ends_expected: 0,
            sent: 0,
            rows_of_call: 0,
            rows: 0,
            value: None,
            calls_expected: 0,
            error: None,
            farewell: None,
            tries: 0,
            committed: 0,
        };
        session.reconnect(transport)?;
        Ok(session)
    }

    /// Gives it a new connection.
    pub fn reconnect(&mut self, transport: Transport) -> Result<()> {
        transport
            .set_nonblocking()
            .map_err(|error| Error::new(format!("could not make a socket non-blocking: {error}")))?;
        self.transport = Some(transport);
        self.frames = Frames::default();
        self.outbox.clear();
        self.written = 0;
        self.ends_expected = 0;
        self.farewell = None;
        self.state = State::Idle;
        Ok(())
    }

    /// Drops the connection. Who has finished needs none.
    pub fn disconnect(&mut self) {
        self.transport = None;
        if self.state != State::Finished {
            self.state = State::Lost;
        }
    }

    /// Whether the server has announced, between transactions, that it closes the connection.
    pub fn has_farewell(&self) -> bool {
        self.farewell.is_some()
    }

    /// The error with which the server announced that it closes the connection, if it did.
    pub fn take_farewell(&mut self) -> Option<ServerError> {
        self.farewell.take().or_else(|| self.error.take().filter(|error| error.is_fatal))
    }

    /// Which of its role's `all` statements are to be prepared on its connection.
    pub fn statements(&self, all: usize) -> Range<StatementId> {
        self.client.statements(all)
    }

    /// Whether an answer has been outstanding since before this instant.
    pub fn is_unanswered_since(&self, then: Nanos) -> bool {
        self.is_in_flight() && self.sent < then
    }

    /// What it is doing.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether a transaction is under way.
    pub fn is_in_flight(&self) -> bool {
        matches!(self.state, State::Running | State::RollingBack)
    }

    /// How many transactions it has committed.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// The socket, if it is connected.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.transport.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Whether bytes wait to be written.
    pub fn has_unwritten(&self) -> bool {
        self.written < self.outbox.len() || self.transport.as_ref().is_some_and(Transport::has_unsent)
    }

    /// Asks the client for a transaction, and sends its beginning if there is one.
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

    /// Marks it as finished: it has done what was asked for.
    pub fn finish(&mut self) {
        self.state = State::Finished;
    }

    /// Reads what has arrived, and goes on as far as that leads. `buffer` is scratch space.
    ///
    /// An `io::Error` means that the connection is broken; the inner error that the server broke the protocol.
    /// `is_closed` says that the stream is known to have an end, which nobody will be told of again.
    pub fn receive(
        &mut self,
        manner: Manner,
        counts: &mut Counts,
        (now, is_closed): (Nanos, bool),
        buffer: &mut [u8],
    ) -> io::Result<Result<Outcome>> {
        loop {
            let Some(transport) = &mut self.transport else { return Ok(Ok(Outcome::Pending)) };
            let count = match transport.read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Ok(Outcome::Pending)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let is_emptied = !is_closed && count < buffer.len() && transport.is_emptied_by_short_read();
            match self.feed(manner, counts, now, &buffer[..count]) {
                Ok(Fed::Waiting) if is_emptied => return Ok(Ok(Outcome::Pending)),
                Ok(Fed::Waiting) => {}
                Ok(Fed::Send) => {
                    self.flush()?;
                    if is_emptied {
                        return Ok(Ok(Outcome::Pending)); // the answer will make the socket readable again
                    }
                }
                Ok(Fed::Ended(outcome)) => return Ok(Ok(outcome)),
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// Writes what is waiting, as far as the socket takes it.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(transport) = &mut self.transport else { return Ok(()) };
        while self.written < self.outbox.len() {
            match transport.write(&self.outbox[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.outbox.clear();
        self.written = 0;
        match transport.flush() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    fn write_from_start(&mut self, manner: Manner, now: Nanos) {
        self.state = State::Running;
        self.call = 0;
        self.rows = 0;
        self.rows_of_call = 0;
        self.value = None;
        self.error = None;
        if manner.mode == Mode::Pipelined {
            self.sent = now;
            self.calls_expected = self.transaction.calls().len();
            self.ends_expected = write_pipeline(&mut self.outbox, manner.statements, &self.transaction);
        } else {
            self.write_next_call(manner, now);
        }
    }

    fn write_next_call(&mut self, manner: Manner, now: Nanos) {
        let call = &self.transaction.calls()[self.call];
        self.sent = now;
        self.calls_expected = self.call + 1;
        self.ends_expected = 1;
        write_call(&mut self.outbox, manner.mode, manner.statements, &self.transaction, call);
    }

    fn feed(&mut self, manner: Manner, counts: &mut Counts, now: Nanos, bytes: &[u8]) -> Result<Fed> {
        let mut frames = std::mem::take(&mut self.frames);
        let mut is_ready = false;
        let result = frames.feed(bytes, |tag, body| {
            is_ready |= self.take(counts, now, tag, body)?;
            Ok(())
        });
        self.frames = frames;
        result?;
        if is_ready { self.advance(manner, counts, now) } else { Ok(Fed::Waiting) }
    }

    /// Takes one message. True if it was the last one that is expected for now.
    fn take(&mut self, counts: &mut Counts, now: Nanos, tag: u8, body: &[u8]) -> Result<bool> {
        match tag {
            b'D' => {
                if self.rows_of_call == 0 {
                    self.value = first_integer(body);
                }
                self.rows_of_call += 1;
            }
            b'C' => self.complete_call(counts, now, body),
            // Between transactions nothing was asked that could fail: the server is about to go.
            b'E' if self.ends_expected == 0 => self.farewell = Some(ServerError::parse(body)),
            b'E' => self.error = Some(self.error.take().unwrap_or_else(|| ServerError::parse(body))),
            b'Z' => {
                self.ends_expected = self.ends_expected.saturating_sub(1);
                return Ok(self.ends_expected == 0 && self.is_in_flight());
            }
            // Answers to Parse, Bind and Describe, notices, parameter changes, notifications, empty query.
            b'1' | b'2' | b'T' | b'n' | b't' | b'N' | b'S' | b'A' | b'I' => {}
            other => {
                return Err(Error::new(format!("the server sent a message of type \"{}\"", other as char))
                    .detail("no statement of a workload is answered like this"));
            }
        }
        Ok(false)
    }

    fn complete_call(&mut self, counts: &mut Counts, now: Nanos, tag: &[u8]) {
        let rows = std::mem::take(&mut self.rows_of_call).max(affected(tag));
        let value = self.value.take();
        let Some(call) = self.transaction.calls().get(self.call) else { return };
        if self.state == State::RollingBack {
            return;
        }
        counts.statements[call.statement].record(now.saturating_sub(self.sent));
        if call.wants_value {
            self.client.receive(call.statement, value);
        }
        self.rows = rows;
        counts.rows += rows;
        self.call += 1;
    }

    /// Goes on after the server has become ready.
    fn advance(&mut self, manner: Manner, counts: &mut Counts, now: Nanos) -> Result<Fed> {
        if self.state == State::RollingBack {
            return Ok(self.after_rollback(manner, counts, now));
        }
        if let Some(error) = &self.error {
            if error.is_fatal {
                return Ok(Fed::Waiting); // the server is about to close the connection
            }
            self.state = State::RollingBack;
            self.sent = now;
            self.ends_expected = 1;
            write_text(&mut self.outbox, "ROLLBACK");
            return Ok(Fed::Send);
        }
        if self.call != self.calls_expected {
            return Err(Error::new("the server is ready without having completed what it was asked for")
                .detail(format!("statements completed: {} of {}", self.call, self.calls_expected)));
        }
        if manner.mode != Mode::Pipelined && self.call < self.transaction.calls().len() {
            self.write_next_call(manner, now);
            return Ok(Fed::Send);
        }
        self.state = State::Idle;
        self.committed += 1;
        self.client.committed(self.rows);
        Ok(Fed::Ended(Outcome::Committed))
    }

    fn after_rollback(&mut self, manner: Manner, counts: &mut Counts, now: Nanos) -> Fed {
        let error = self.error.take().unwrap_or_default();
        if manner.retried.contains(&error.code) && self.tries < MAX_TRIES {
            self.tries += 1;
            *counts.retries.entry(error.code).or_default() += 1;
            self.write_from_start(manner, now);
            return Fed::Send;
        }
        *counts.errors.entry(error.code.clone()).or_default() += 1;
        self.state = State::Idle;
        let name = self
            .transaction
            .calls()
            .get(self.call)
            .map_or("a transaction", |call| manner.statements[call.statement].name);
        Fed::Ended(Outcome::GivenUp(error.while_using_tables(&format!("run {name}"))))
    }
}

enum Fed {
    Waiting,
    Send,
    Ended(Outcome),
}
