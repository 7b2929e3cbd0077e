//! Workloads. Each folder is a family; `catalogue.rs` lists the families.
//!
//! A workload is pure: its options, a client's place and the seed determine a stream of transactions. Two
//! servers with the same seed see the same stream. Sockets, clocks and pacing are elsewhere.

mod calendar;
mod captured;
pub mod catalogue;
pub mod data_set;
pub mod insert_benchmark;
mod options;
mod pgbench;
mod query;
pub mod sampled;
mod scan;
mod sysbench;
mod transaction;

#[cfg(test)]
mod recorded;

use std::ops::Range;

pub use transaction::{Call, Transaction};

/// A statement of a workload. In simple mode, or if `Unprepared`, it is sent as a simple query.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its name in results, for example `point-select`.
    pub name: &'static str,
    /// SQL with `$1`, `$2`, …; empty for `Unprepared`, where each call has its own text.
    pub sql: String,
    /// Whether it may be prepared.
    pub kind: StatementKind,
    /// Parameter types (OIDs) declared in Parse; the server infers missing ones.
    pub parameter_types: &'static [u32],
    /// Whether results are requested in binary format.
    pub has_binary_results: bool,
    /// Whether simple queries also quote numbers, so that the server infers their types as for parameters.
    pub quotes_numbers: bool,
}

impl Statement {
    /// A statement with inferred parameter types and results in text format.
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

    /// A statement with a new text for every call.
    pub fn unprepared(name: &'static str) -> Self {
        Self { kind: StatementKind::Unprepared, ..Self::prepared(name, "") }
    }
}

/// How a statement is sent in the prepared and extended modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// Parsed once per connection, then executed with parameters.
    Prepared,
    /// A simple query; the client writes its whole text for every call.
    Unprepared,
}

/// Index of a statement in `Role::statements`.
pub type StatementId = usize;

/// A client's position in a workload; it determines the stream of transactions.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Index within the role, from 0.
    pub client: u64,
    /// Number of clients of the role.
    pub clients: u64,
    /// The experiment's seed, the same for all compared servers.
    pub seed: u64,
}

/// The clients of one kind within a workload: most workloads have one role, the Insert Benchmark up to four.
pub struct Role {
    /// Its name in results, for example `insert`.
    pub name: &'static str,
    /// All statements of its transactions.
    pub statements: Vec<Statement>,
    /// The streams of transactions, one per connection.
    pub clients: Vec<Box<dyn Client>>,
    /// When transactions start.
    pub pace: Pace,
}

/// When the transactions of a role start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Closed loop: each client starts its next transaction after the end of the previous one.
    Closed,
    /// Open loop: transactions have intended start times, independent of the server.
    Open {
        /// Transactions per second and client.
        rate: f64,
        /// Distribution of arrivals.
        arrivals: Arrivals,
    },
    /// The Insert Benchmark's limiter: `burst` transactions at full speed, then sleep for the rest of the
    /// second. Missed seconds are not made up. The first second has a single transaction.
    Burst {
        /// Transactions per second and client.
        burst: u32,
    },
}

/// The distribution of an open loop's arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Equal gaps.
    Uniform,
    /// A Poisson process: exponential gaps.
    Poisson,
}

/// A client's answer to a request for its next transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A transaction was written.
    Ready,
    /// The client waits for one of another role with the same index; retry after that one's next transaction.
    Blocked,
    /// The client has finished.
    Finished,
}

/// One client's stream of transactions.
pub trait Client: Send {
    /// Which of its role's `all` statements it uses. Only these are prepared on its connection.
    fn statements(&self, all: usize) -> Range<StatementId> {
        0..all
    }

    /// Writes the next transaction into `transaction`, which is empty.
    fn next(&mut self, transaction: &mut Transaction) -> Next;

    /// Receives the first column of the first row of a call made with `Transaction::call_for_value`; `None`
    /// for no row or NULL.
    fn receive(&mut self, _statement: StatementId, _value: Option<i64>) {}

    /// Whether the last written transaction counts. If not, it is excluded from the role's transactions, rows
    /// and latencies, but its statements are included in the latencies of statements.
    fn is_counted(&self) -> bool {
        true
    }

    /// Called after the commit of the last written transaction. `rows` is the number of rows that its last
    /// call affected or returned.
    fn committed(&mut self, _rows: u64) {}
}

/// Statements before and after a workload's clients; each is sent separately, outside transaction blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Run before statements are prepared, one after another.
    pub before: Vec<String>,
    /// Run after all clients have finished: stages one after another; the lists of a stage concurrently, each
    /// on its own connection.
    pub after: Vec<Vec<Vec<String>>>,
}

/// The schema of a client with its own tables; numbers start at 1.
pub fn schema_of_client(number: u64) -> String {
    format!("client_{number}")
}
