//! Workloads: what is run. One folder adds one family; `catalogue.rs` lists the families.
//!
//! A workload is pure: from its options, a client's place and the seed it makes a stream of transactions.
//! Two servers that are given the same seed see the same stream. Sockets, clocks and pacing are elsewhere.

mod captured;
pub mod catalogue;
mod chores;
pub mod data_set;
pub mod insert_benchmark;
mod options;
pub mod own_schema;
mod pgbench;
mod query;
pub mod sampled;
mod scan;
mod sysbench;
mod transaction;

#[cfg(test)]
mod recorded;

use std::ops::Range;

pub use chores::Chores;
pub use transaction::{Call, Transaction};

/// A statement of a workload. In simple mode, and if it is `Unprepared`, it travels as text.
#[derive(Clone, Debug)]
pub struct Statement {
    /// What it is called in results, for example `point-select`.
    pub name: &'static str,
    /// SQL with `$1`, `$2`, …; empty for `Unprepared`, whose text each call brings along.
    pub sql: String,
    /// Whether it may be prepared.
    pub kind: StatementKind,
    /// Types (oids) that Parse declares for the parameters; those that are missing are up to the server.
    pub parameter_types: &'static [u32],
    /// Whether results are asked for in binary format.
    pub has_binary_results: bool,
    /// Whether text has quotes around numbers too, so that the server infers their types as a parameter's.
    pub quotes_numbers: bool,
}

impl Statement {
    /// A statement with parameters of types that the server infers, and results as text.
    pub fn prepared(name: &'static str, sql: impl Into<String>) -> Self {
        Self {
            name,
            sql: sql.into(),
            kind: StatementKind::Prepared,
            parameter_types: &[],
            has_binary_results: false,
            quotes_numbers: false,
        }
    }

    /// A statement whose text is written for every call.
    pub fn unprepared(name: &'static str) -> Self {
        Self { kind: StatementKind::Unprepared, ..Self::prepared(name, "") }
    }
}

/// How a statement is sent in the prepared and extended modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// Parsed once per connection, then executed with parameters.
    Prepared,
    /// A simple query whose whole text is written by the client for every call.
    Unprepared,
}

/// Index of a statement in `Role::statements`.
pub type StatementId = usize;

/// Which of a workload's clients this is; the stream of transactions follows from it.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// From 0; every client of a role has its own.
    pub client: u64,
    /// How many clients the role has.
    pub clients: u64,
    /// The experiment's seed: the same for every server that is compared.
    pub seed: u64,
}

/// The clients of one kind within a workload: most workloads have one role, the Insert Benchmark up to four.
pub struct Role {
    /// What it is called in results, for example `insert`.
    pub name: &'static str,
    /// Every statement that its transactions use.
    pub statements: Vec<Statement>,
    /// The streams of transactions, one per connection.
    pub clients: Vec<Box<dyn Client>>,
    /// When transactions start.
    pub pace: Pace,
}

/// When the transactions of a role start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Closed loop: each client starts its next transaction when the last one has ended.
    Closed,
    /// Open loop: transactions have intended start times, whatever the server does. Per second and client.
    Open {
        /// Transactions per second and client.
        rate: f64,
        /// How arrivals are spread.
        arrivals: Arrivals,
    },
    /// The Insert Benchmark's limiter: `burst` transactions as fast as possible, then the rest of the second
    /// asleep; a second that was missed is not caught up. The first second has a single transaction.
    Burst {
        /// Transactions per second and client.
        burst: u32,
    },
}

/// How the arrivals of an open loop are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At equal distances.
    Uniform,
    /// As a Poisson process: exponential distances.
    Poisson,
}

/// What a client has for the event loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A transaction was written.
    Ready,
    /// It waits for a client of another role with the same number; ask again when one has ended a transaction.
    Blocked,
    /// There is nothing more to do: the client ends.
    Finished,
}

/// One client's stream of transactions.
pub trait Client: Send {
    /// Which of its role's `all` statements it uses: only these are prepared on its connection.
    fn statements(&self, all: usize) -> Range<StatementId> {
        0..all
    }

    /// Writes the next transaction into `transaction`, which is empty.
    fn next(&mut self, transaction: &mut Transaction) -> Next;

    /// Receives the first column of the first row of a call that asked for it
    /// (`Transaction::call_for_value`); `None` if there was no row or it was NULL.
    fn receive(&mut self, _statement: StatementId, _value: Option<i64>) {}

    /// Whether the transaction written last counts among those of its role. What does not is not counted in
    /// transactions, rows or their latencies, but its statements are in those of statements.
    fn is_counted(&self) -> bool {
        true
    }

    /// Learns that the transaction written last was committed. `rows` are those that its last call affected
    /// or returned.
    fn committed(&mut self, _rows: u64) {}
}
