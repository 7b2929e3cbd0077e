//! What a thread waits for: its connections, its timer, and whoever wakes it up. Nothing else in it may wait.

use std::io;
use std::os::fd::AsRawFd;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::clock::Nanos;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::timer::Timer;

/// Of an event: somebody has something to tell. Connections have their sessions' numbers.
pub const WAKE: Token = Token(usize::MAX);
/// Of an event: the timer has gone off.
pub const TIMER: Token = Token(usize::MAX - 1);

/// The kernel's queue of events.
pub struct Poller {
    poll: Poll,
    timer: Timer,
}

impl Poller {
    /// Makes one without connections; the waker gives it the event `WAKE`.
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

    /// Listens to a session, if it has a connection.
    pub fn register(&self, index: usize, session: &Session) -> Result<()> {
        let Some(descriptor) = session.descriptor() else { return Ok(()) };
        let registry = self.poll.registry();
        registry
            .register(&mut SourceFd(&descriptor), Token(index), Interest::READABLE)
            .map_err(|error| system(&error))
    }

    /// Waits also for room to write, if the session has something to write.
    pub fn watch_for_writing(&self, index: usize, session: &Session) -> Result<()> {
        if session.has_unwritten() {
            self.change_interest(index, session, Interest::READABLE | Interest::WRITABLE)?;
        }
        Ok(())
    }

    /// Waits no more for room to write, unless the session still has something to write.
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

    /// Listens no more to a session's connection.
    pub fn deregister(&self, session: &Session) -> Result<()> {
        let Some(descriptor) = session.descriptor() else { return Ok(()) };
        self.poll.registry().deregister(&mut SourceFd(&descriptor)).map_err(|error| system(&error))
    }

    /// Sets the timer to `at`, or off; `now` is the time now.
    pub fn set_timer(&mut self, now: Nanos, at: Option<Nanos>) -> Result<()> {
        self.timer.set(now, at).map_err(|error| system(&error))
    }

    /// Takes note that the timer has gone off.
    pub fn acknowledge_timer(&mut self) {
        self.timer.acknowledge();
    }
}

fn system(error: &io::Error) -> Error {
    Error::new(format!("could not set up an event loop: {error}"))
        .hint("is the limit of open files (ulimit -n) above the number of connections?")
}
