//! A thread's event queue: its connections, its timer, and its waker. Nothing else in a thread may block.

use std::io;
use std::os::fd::AsRawFd;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::clock::Nanos;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::timer::Timer;

/// Token of a wake-up by another thread. Tokens of connections are their sessions' indices.
pub const WAKE: Token = Token(usize::MAX);
/// Token of an expired timer.
pub const TIMER: Token = Token(usize::MAX - 1);

/// The kernel's event queue (epoll) and a timer.
pub struct Poller {
    poll: Poll,
    timer: Timer,
}

impl Poller {
    /// Creates a poller without connections; the waker triggers the event `WAKE`.
    pub fn new() -> Result<(Self, Waker)> {
        let make = || {
            let (poll, timer) = (Poll::new()?, Timer::new()?);
            let waker = Waker::new(poll.registry(), WAKE)?;
            poll.registry().register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
            Ok((Self { poll, timer }, waker))
        };
        make().map_err(|error| system(&error))
    }

    /// Waits for the next events.
    pub fn wait(&mut self, events: &mut Events) -> Result<()> {
        loop {
            match self.poll.poll(events, None) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map_err(|error| system(&error)),
            }
        }
    }

    /// Registers a session's connection, if it has one.
    pub fn register(&self, index: usize, session: &Session) -> Result<()> {
        let Some(descriptor) = session.descriptor() else { return Ok(()) };
        let registry = self.poll.registry();
        registry
            .register(&mut SourceFd(&descriptor), Token(index), Interest::READABLE)
            .map_err(|error| system(&error))
    }

    /// Also polls for writability if the session has unwritten bytes.
    pub fn watch_for_writing(&self, index: usize, session: &Session) -> Result<()> {
        if session.has_unwritten() {
            self.change_interest(index, session, Interest::READABLE | Interest::WRITABLE)?;
        }
        Ok(())
    }

    /// Stops polling for writability unless the session still has unwritten bytes.
    pub fn unwatch_for_writing(&self, index: usize, session: &Session) -> Result<()> {
        if session.has_unwritten() {
            return Ok(());
        }
        self.change_interest(index, session, Interest::READABLE)
    }

    fn change_interest(&self, index: usize, session: &Session, interest: Interest) -> Result<()> {
        let Some(descriptor) = session.descriptor() else { return Ok(()) };
        let registry = self.poll.registry();
        registry
            .reregister(&mut SourceFd(&descriptor), Token(index), interest)
            .map_err(|error| system(&error))
    }

    /// Deregisters a session's connection.
    pub fn deregister(&self, session: &Session) -> Result<()> {
        let Some(descriptor) = session.descriptor() else { return Ok(()) };
        self.poll.registry().deregister(&mut SourceFd(&descriptor)).map_err(|error| system(&error))
    }

    /// Sets the timer to `at`, or disarms it.
    pub fn set_timer(&mut self, now: Nanos, at: Option<Nanos>) -> Result<()> {
        self.timer.set(now, at).map_err(|error| system(&error))
    }

    /// Acknowledges the expired timer.
    pub fn acknowledge_timer(&mut self) {
        self.timer.acknowledge();
    }
}

fn system(error: &io::Error) -> Error {
    Error::new(format!("could not set up an event loop: {error}"))
        .hint("check that the limit on open files (ulimit -n) exceeds the number of connections")
}
