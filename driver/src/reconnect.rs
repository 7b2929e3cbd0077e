//! Reconnects in a separate thread: connecting blocks, and an event loop must not.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use mio::Waker;

use crate::connect::Connection;
use crate::database_locks::{DatabaseLocks, Refusal};
use crate::error::{Error, Result};
use crate::load::{Arm, Load};
use crate::messages::{Command, Lost, Reconnected};
use crate::protocol::request::Mode;
use crate::transport::Transport;
use crate::workload::StatementId;

const PAUSE: Duration = Duration::from_millis(100);

/// The reason for a lost connection, for an error's detail.
pub fn why_lost(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the server closed it".into(),
        _ => error.to_string(),
    }
}

/// The error for a lost connection in a run that does not reconnect.
pub fn connection_lost(arm: &Arm, code: &str, why: String) -> Error {
    Error::new(format!("lost a connection to {} ({})", arm.name, arm.info.place()))
        .sqlstate(code)
        .detail(why)
        .hint("see the server's log for the reason; to continue after a restart, allow reconnecting")
}

/// Reconnects lost sessions, one after another, until the thread that loses them exits.
#[allow(clippy::needless_pass_by_value)] // it owns its ends of the channels
pub fn serve(
    load: Arc<Load>,
    locks: Arc<DatabaseLocks>,
    lost: Receiver<Lost>,
    commands: Sender<Command>,
    waker: Arc<Waker>,
) {
    for lost in lost {
        let transport = connect_until(&load, &locks, &lost);
        let session = lost.session;
        if commands.send(Command::Reconnected(Reconnected { session, transport })).is_err() {
            return;
        }
        if waker.wake().is_err() {
            return;
        }
    }
}

fn connect_until(load: &Load, locks: &DatabaseLocks, lost: &Lost) -> Result<Transport> {
    let arm = &load.arms[lost.arm];
    let limit = Duration::from_nanos(load.reconnect);
    let deadline = Instant::now() + limit;
    loop {
        // The lock first: another driver may have taken the database over, and two loads would be measured at
        // once.
        let opened = locks.retake(lost.arm, &arm.info).and_then(|()| {
            open(load, (lost.arm, lost.role, lost.client), lost.statements.clone())
                .map_err(Refusal::Unreachable)
        });
        match opened {
            Ok(transport) => return Ok(transport),
            Err(Refusal::Locked(error)) => return Err(error),
            Err(Refusal::Unreachable(error)) if Instant::now() >= deadline => {
                let limit_s = limit.as_secs_f64();
                let message = format!("could not reconnect to {} within {limit_s:.0} s", arm.name);
                return Err(Error::new(message).detail(error.message));
            }
            Err(Refusal::Unreachable(_)) => std::thread::sleep(PAUSE),
        }
    }
}

/// Connects a client of a role and prepares its statements.
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
