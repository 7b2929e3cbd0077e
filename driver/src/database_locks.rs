//! Prevents concurrent measurements on a database: one advisory lock per database, each on a dedicated
//! connection and reacquired when that connection is lost.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::connect::Connection;
use crate::conninfo::ConnInfo;
use crate::error::{Error, Result};
use crate::load::Arm;

/// Exclusive lock on a database; drivers of one load that is split into parts share it. The key is arbitrary
/// ("pgdyno" in ASCII).
const LOCK: &str = "SELECT pg_try_advisory_lock(123597430287983)::int";
const LOCK_OF_A_PART: &str = "SELECT pg_try_advisory_lock_shared(123597430287983)::int";
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// Why a lock was not acquired.
pub enum Refusal {
    /// It is held elsewhere: a retry would not help.
    Locked(Error),
    /// The server could not be reached.
    Unreachable(Error),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Locked(error) | Refusal::Unreachable(error) => error,
        }
    }
}

/// The locks on the databases of all arms.
pub struct DatabaseLocks {
    locks: Vec<Mutex<Connection>>,
    lock: &'static str,
    /// Reported server versions, by arm.
    pub server_versions: Vec<String>,
}

impl DatabaseLocks {
    /// Acquires the locks. Fails if one is held elsewhere; drivers of a load's parts (`is_part`) share them.
    pub fn take(arms: &[Arm], is_part: bool) -> Result<Self> {
        let lock = if is_part { LOCK_OF_A_PART } else { LOCK };
        let locks = arms
            .iter()
            .map(|arm| lock_database(&arm.info, lock))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        let server_versions = locks.iter().map(|lock| lock.server_version.clone()).collect();
        Ok(Self { locks: locks.into_iter().map(Mutex::new).collect(), lock, server_versions })
    }

    /// Reacquires an arm's lock if its connection was lost, for example in a server restart.
    pub fn retake(&self, arm: usize, info: &ConnInfo) -> std::result::Result<(), Refusal> {
        let mut lock = self.locks[arm].lock().unwrap_or_else(PoisonError::into_inner);
        if lock.execute("SELECT 1").is_err() {
            *lock = lock_database(info, self.lock)?;
        }
        Ok(())
    }
}

fn lock_database(info: &ConnInfo, lock: &str) -> std::result::Result<Connection, Refusal> {
    let mut connection = Connection::open(info).map_err(Refusal::Unreachable)?;
    for _ in 0..LOCK_TRIES {
        if connection.execute(lock).map_err(Refusal::Unreachable)?.as_deref() == Some("1") {
            connection.print_note();
            return Ok(connection);
        }
        // The backend of a driver that has just exited may not have terminated yet.
        std::thread::sleep(LOCK_PAUSE);
    }
    let message = format!("database \"{}\" on {} is already under load", info.login.database, info.place());
    Err(Refusal::Locked(
        Error::new(message)
            .detail(
                "its lock is held by another pgdyno-driver, or by another arm that names the same database \
                 differently; concurrent measurements would disturb each other",
            )
            .hint("wait for the other run to end, or use another database"),
    ))
}
