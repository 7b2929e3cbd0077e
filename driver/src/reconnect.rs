//! Connects again, beside the event loop: connecting waits, and an event loop must not.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use mio::Waker;

use crate::connect::Connection;
use crate::error::{Error, Result};
use crate::load::Load;
use crate::messages::Command;
use crate::protocol::request::Mode;
use crate::transport::Transport;

const PAUSE: Duration = Duration::from_millis(100);

/// A session without a connection.
pub struct Lost {
    /// Its index in its thread.
    pub session: usize,
    /// Its arm.
    pub arm: usize,
    /// Its role.
    pub role: usize,
}

/// The answer to a `Lost`.
pub struct Reconnected {
    /// Its index in its thread.
    pub session: usize,
    /// The new connection, or why there is none.
    pub transport: Result<Transport>,
}

/// Connects whatever is lost, one after the other, until nobody loses connections any more.
#[allow(clippy::needless_pass_by_value)] // it owns its ends of the channels
pub fn serve(load: Arc<Load>, lost: Receiver<Lost>, commands: Sender<Command>, waker: Arc<Waker>) {
    for Lost { session, arm, role } in lost {
        let transport = connect_until(&load, arm, role);
        if commands.send(Command::Reconnected(Reconnected { session, transport })).is_err() {
            return;
        }
        if waker.wake().is_err() {
            return;
        }
    }
}

fn connect_until(load: &Load, arm: usize, role: usize) -> Result<Transport> {
    let limit = Duration::from_nanos(load.reconnect);
    let deadline = Instant::now() + limit;
    loop {
        match open(load, arm, role) {
            Ok(transport) => return Ok(transport),
            Err(error) if Instant::now() >= deadline => {
                return Err(Error::new(format!(
                    "{} did not come back within {:.0} s",
                    load.arms[arm].name,
                    limit.as_secs_f64()
                ))
                .detail(error.message));
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Connects a session of a role and prepares its statements.
pub fn open(load: &Load, arm: usize, role: usize) -> Result<Transport> {
    let mut connection = Connection::open(&load.arms[arm].info)?;
    if matches!(load.mode, Mode::Prepared | Mode::Pipelined) {
        connection.prepare(&load.roles[role].statements)?;
    }
    connection.into_transport()
}
