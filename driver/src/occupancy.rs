//! Keeps others from measuring on the same databases: a lock for each, on a connection of its own, that is taken
//! again when that connection was lost.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::connect::Connection;
use crate::conninfo::ConnInfo;
use crate::error::{Error, Result};
use crate::load::Arm;

/// Whoever holds this lock on a database works on it alone, or with those who issue other parts of the same load.
/// The number is arbitrary ("pgdyno" in ASCII).
const LOCK: &str = "SELECT pg_try_advisory_lock(123597430287983)::int";
const LOCK_OF_A_PART: &str = "SELECT pg_try_advisory_lock_shared(123597430287983)::int";
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// Why a database is not ours.
pub enum Refusal {
    /// Somebody else works on it: to try again would not help.
    Occupied(Error),
    /// It could not be asked.
    Unreachable(Error),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Occupied(error) | Refusal::Unreachable(error) => error,
        }
    }
}

/// The locks on the databases of all arms.
pub struct Occupancy {
    locks: Vec<Mutex<Connection>>,
    lock: &'static str,
    /// As the servers report them, by arm.
    pub server_versions: Vec<String>,
}

impl Occupancy {
    /// Takes the locks. Fails if somebody has one of them; who issues a part of a load shares them with those who
    /// issue the others.
    pub fn take(arms: &[Arm], is_part: bool) -> Result<Self> {
        let lock = if is_part { LOCK_OF_A_PART } else { LOCK };
        let locks =
            arms.iter().map(|arm| occupy(&arm.info, lock)).collect::<std::result::Result<Vec<_>, _>>()?;
        let server_versions = locks.iter().map(|lock| lock.server_version.clone()).collect();
        Ok(Self { locks: locks.into_iter().map(Mutex::new).collect(), lock, server_versions })
    }

    /// Takes an arm's lock again if its connection has gone: the server may have been restarted.
    pub fn retake(&self, arm: usize, info: &ConnInfo) -> std::result::Result<(), Refusal> {
        let mut lock = self.locks[arm].lock().unwrap_or_else(PoisonError::into_inner);
        if lock.execute("SELECT 1").is_err() {
            *lock = occupy(info, self.lock)?;
        }
        Ok(())
    }
}

fn occupy(info: &ConnInfo, lock: &str) -> std::result::Result<Connection, Refusal> {
    let mut connection = Connection::open(info).map_err(Refusal::Unreachable)?;
    for _ in 0..LOCK_TRIES {
        if connection.execute(lock).map_err(Refusal::Unreachable)?.as_deref() == Some("1") {
            connection.tell_note();
            return Ok(connection);
        }
        // The backend of a driver that has just ended may not have noticed yet.
        std::thread::sleep(LOCK_PAUSE);
    }
    let message = format!("database \"{}\" on {} is under load already", info.login.database, info.place());
    Err(Refusal::Occupied(
        Error::new(message)
            .detail(
                "its lock is held by another pgdyno-driver, or for an arm that names it in another way; \
                 two at once would measure each other",
            )
            .hint("wait until the other one has ended, or use another database"),
    ))
}
