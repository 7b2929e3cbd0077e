//! What is to be done, checked and complete: arms, statements, limits. Shared by all threads, never changed.

use std::path::PathBuf;

use crate::clock::Nanos;
use crate::conninfo::ConnInfo;
use crate::protocol::request::Mode;
use crate::think_time::ThinkTime;
use crate::workload::{Statement, own_schema};

/// A server under load.
pub struct Arm {
    /// What it is called in results.
    pub name: String,
    /// Where it is.
    pub info: ConnInfo,
    /// Where its transactions are logged (`PREFIX.THREAD`), if they are.
    pub log_prefix: Option<PathBuf>,
}

/// A role of the workload, as threads and results need it.
pub struct RoleFacts {
    /// Its name.
    pub name: &'static str,
    /// Its statements.
    pub statements: Vec<Statement>,
    /// How many clients it has, in every arm.
    pub clients: usize,
    /// Whether its transactions have intended start times.
    pub is_open: bool,
}

/// What a session needs of its role.
#[derive(Clone, Copy)]
pub struct Manner<'a> {
    /// The role's statements.
    pub statements: &'a [Statement],
    /// How they travel.
    pub mode: Mode,
    /// SQLSTATEs after which the same transaction is tried again.
    pub retried: &'a [String],
}

/// A load.
pub struct Load {
    /// The servers; all get the same streams of transactions.
    pub arms: Vec<Arm>,
    /// The workload's roles.
    pub roles: Vec<RoleFacts>,
    /// The number of the first client's schema, where each client has one; in every arm the same.
    pub first_schema: Option<u64>,
    /// How statements travel.
    pub mode: Mode,
    /// SQLSTATEs after which a transaction is tried again.
    pub retried: Vec<String>,
    /// Transactions per client; no limit if `None`.
    pub count: Option<u64>,
    /// Pauses of each client.
    pub think_time: ThinkTime,
    /// Time over which the clients start, one after the other.
    pub ramp: Nanos,
    /// How many clients the largest role has.
    pub clients: usize,
    /// How many transactions may be given up before the run fails.
    pub max_errors: u64,
    /// For how long a lost connection is tried to be replaced; 0: it fails the run.
    pub reconnect: Nanos,
    /// How long an answer is waited for before the run fails.
    pub answer_limit: Nanos,
}

impl Load {
    /// What a session of a role needs.
    pub fn manner(&self, role: usize) -> Manner<'_> {
        Manner { statements: &self.roles[role].statements, mode: self.mode, retried: &self.retried }
    }

    /// Where a client of an arm connects to. One with tables of its own finds them by its search path.
    pub fn info(&self, arm: usize, client: usize) -> ConnInfo {
        let mut info = self.arms[arm].info.clone();
        if let Some(first) = self.first_schema {
            let path = format!("-c search_path={}", own_schema::of_client(first + client as u64));
            let options = info.login.options.iter().chain([&path]).map(String::as_str);
            info.login.options = Some(options.collect::<Vec<_>>().join(" "));
        }
        info
    }

    /// Whether lost connections are replaced.
    pub fn reconnects(&self) -> bool {
        self.reconnect > 0
    }
}
