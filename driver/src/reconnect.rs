//! Connects again, beside the event loop: connecting waits, and an event loop must not.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use mio::Waker;

use crate::connect::Connection;
use crate::error::{Error, Result};
use crate::load::{Arm, Load};
use crate::messages::Command;
use crate::occupancy::{Occupancy, Refusal};
use crate::protocol::request::Mode;
use crate::transport::Transport;
use crate::workload::StatementId;

const PAUSE: Duration = Duration::from_millis(100);

/// A session without a connection.
pub struct Lost {
    /// Its index in its thread.
    pub session: usize,
    /// Its arm.
    pub arm: usize,
    /// Its role.
    pub role: usize,
    /// Its number within the role.
    pub client: usize,
    /// The statements of the role that its client uses.
    pub statements: Range<StatementId>,
}

/// The answer to a `Lost`.
pub struct Reconnected {
    /// Its index in its thread.
    pub session: usize,
    /// The new connection, or why there is none.
    pub transport: Result<Transport>,
}

/// Says why a connection broke.
pub fn why_lost(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the server closed it".into(),
        _ => error.to_string(),
    }
}

/// The error of a run that may not connect again.
pub fn refused(arm: &Arm, code: &str, why: String) -> Error {
    Error::new(format!("lost a connection to {} ({})", arm.name, arm.info.place()))
        .sqlstate(code)
        .detail(why)
        .hint("the server's log says why; to go on after a restart, allow reconnecting")
}

/// Connects whatever is lost, one after the other, until nobody loses connections any more.
#[allow(clippy::needless_pass_by_value)] // it owns its ends of the channels
pub fn serve(
    load: Arc<Load>,
    occupancy: Arc<Occupancy>,
    lost: Receiver<Lost>,
    commands: Sender<Command>,
    waker: Arc<Waker>,
) {
    for lost in lost {
        let transport = connect_until(&load, &occupancy, &lost);
        let session = lost.session;
        if commands.send(Command::Reconnected(Reconnected { session, transport })).is_err() {
            return;
        }
        if waker.wake().is_err() {
            return;
        }
    }
}

fn connect_until(load: &Load, occupancy: &Occupancy, lost: &Lost) -> Result<Transport> {
    let arm = &load.arms[lost.arm];
    let limit = Duration::from_nanos(load.reconnect);
    let deadline = Instant::now() + limit;
    loop {
        // The lock first: who works on a database that was taken over meanwhile measures two loads at once.
        let opened = occupancy.retake(lost.arm, &arm.info).and_then(|()| {
            open(load, (lost.arm, lost.role, lost.client), lost.statements.clone())
                .map_err(Refusal::Unreachable)
        });
        match opened {
            Ok(transport) => return Ok(transport),
            Err(Refusal::Occupied(error)) => return Err(error),
            Err(Refusal::Unreachable(error)) if Instant::now() >= deadline => {
                let message = format!("{} did not come back within {:.0} s", arm.name, limit.as_secs_f64());
                return Err(Error::new(message).detail(error.message));
            }
            Err(Refusal::Unreachable(_)) => std::thread::sleep(PAUSE),
        }
    }
}

/// Connects a session of a role and prepares the statements that its client uses.
pub fn open(
    load: &Load,
    (arm, role, client): (usize, usize, usize),
    statements: Range<StatementId>,
) -> Result<Transport> {
    let mut connection = Connection::open(&load.info(arm, client))?;
    if matches!(load.mode, Mode::Prepared | Mode::Pipelined) {
        connection.prepare(&load.roles[role].statements, statements)?;
    }
    connection.into_transport()
}
