//! A load after all checks: arms, statements, limits. Immutable and shared by all threads.

use std::path::PathBuf;

use crate::clock::Nanos;
use crate::conninfo::ConnInfo;
use crate::protocol::request::Mode;
use crate::think_time::ThinkTime;
use crate::workload::{Statement, schema_of_client};

/// A server under load.
pub struct Arm {
    /// Its name in results.
    pub name: String,
    /// Its connection parameters.
    pub info: ConnInfo,
    /// Prefix of its transaction logs (`PREFIX.THREAD`); `None`: no logs.
    pub log_prefix: Option<PathBuf>,
}

/// The parts of a workload's role that threads and results need.
pub struct RoleFacts {
    /// Its name.
    pub name: &'static str,
    /// Its statements.
    pub statements: Vec<Statement>,
    /// Number of clients per arm.
    pub clients: usize,
    /// Whether its transactions have intended start times.
    pub is_open: bool,
}

/// The parts of a role that a session needs.
#[derive(Clone, Copy)]
pub struct Manner<'a> {
    /// The role's statements.
    pub statements: &'a [Statement],
    /// Their query protocol.
    pub mode: Mode,
    /// SQLSTATEs after which the same transaction is retried.
    pub retried: &'a [String],
}

/// A load.
pub struct Load {
    /// The servers; all get the same streams of transactions.
    pub arms: Vec<Arm>,
    /// The workload's roles.
    pub roles: Vec<RoleFacts>,
    /// The number of the first client's schema, the same in every arm; `None`: no schema per client.
    pub first_schema: Option<u64>,
    /// Query protocol.
    pub mode: Mode,
    /// SQLSTATEs after which a transaction is retried.
    pub retried: Vec<String>,
    /// Transactions per client; no limit if `None`.
    pub count: Option<u64>,
    /// Pauses between transactions.
    pub think_time: ThinkTime,
    /// Time over which the clients start, one after another.
    pub ramp: Nanos,
    /// Number of clients of the largest role.
    pub clients: usize,
    /// Number of transactions that may be given up before the run fails.
    pub max_errors: u64,
    /// How long to try to replace a lost connection; 0: a lost connection fails the run.
    pub reconnect: Nanos,
    /// Time limit on an answer; exceeding it fails the run.
    pub answer_limit: Nanos,
}

impl Load {
    /// The parts of a role that its sessions need.
    pub fn manner(&self, role: usize) -> Manner<'_> {
        Manner { statements: &self.roles[role].statements, mode: self.mode, retried: &self.retried }
    }

    /// The connection parameters of a client; with a schema per client, they set its `search_path`.
    pub fn info(&self, arm: usize, client: usize) -> ConnInfo {
        let mut info = self.arms[arm].info.clone();
        if let Some(first) = self.first_schema {
            let path = format!("-c search_path={}", schema_of_client(first + client as u64));
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
