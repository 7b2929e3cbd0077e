//! The OLTP family of sysbench 1.0, statement by statement, as sent by its PostgreSQL driver.
//!
//! A server sees the same as from sysbench: texts, order, choice of tables and keys, contents of columns.
//! There is one intended difference. When sysbench restarts an event (deadlock, serialization failure,
//! duplicate key), it draws new parameters; here, the same transaction is retried with the same parameters
//! (ADR 9), so that the streams of two servers do not diverge.

mod client;
mod statements;
mod table;

use super::options::SysbenchOptions;
use super::{Client, Pace, Place, Role};

pub use table::data_set;

use client::SysbenchClient;
use statements::{Ids, Kind};

/// The name of the only role.
const ROLE: &str = "main";

/// One of sysbench's scripts.
#[derive(Debug, PartialEq, Eq)]
pub struct Script {
    /// The workload's name.
    pub name: &'static str,
    /// Whether its statements are enclosed in BEGIN and COMMIT, unless option `skip_trx` is set.
    has_transaction: bool,
    steps: &'static [Step],
}

/// A part of a transaction. Each part chooses its own table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    PointSelects(u32),
    Range(Kind),
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    DeleteInsert,
    Insert,
    RandomPoints,
    RandomRanges,
}

const POINT_SELECTS: Step = Step::PointSelects(10);
const SIMPLE_RANGE: Step = Step::Range(Kind::SimpleRange);
const SUM_RANGE: Step = Step::Range(Kind::SumRange);
const ORDER_RANGE: Step = Step::Range(Kind::OrderRange);
const DISTINCT_RANGE: Step = Step::Range(Kind::DistinctRange);

/// All scripts.
pub static SCRIPTS: [Script; 10] = [
    script("sysbench-point-select", &[Step::PointSelects(1)]),
    transaction("sysbench-read-only", &[POINT_SELECTS, SIMPLE_RANGE, SUM_RANGE, ORDER_RANGE, DISTINCT_RANGE]),
    transaction(
        "sysbench-read-write",
        &[
            POINT_SELECTS,
            SIMPLE_RANGE,
            SUM_RANGE,
            ORDER_RANGE,
            DISTINCT_RANGE,
            Step::IndexUpdate,
            Step::NonIndexUpdate,
            Step::DeleteInsert,
        ],
    ),
    transaction("sysbench-write-only", &[Step::IndexUpdate, Step::NonIndexUpdate, Step::DeleteInsert]),
    script("sysbench-update-index", &[Step::IndexUpdate]),
    script("sysbench-update-non-index", &[Step::NonIndexUpdate]),
    script("sysbench-insert", &[Step::Insert]),
    script("sysbench-delete", &[Step::Delete]),
    script("sysbench-select-random-points", &[Step::RandomPoints]),
    script("sysbench-select-random-ranges", &[Step::RandomRanges]),
];

const fn script(name: &'static str, steps: &'static [Step]) -> Script {
    Script { name, has_transaction: false, steps }
}

const fn transaction(name: &'static str, steps: &'static [Step]) -> Script {
    Script { name, has_transaction: true, steps }
}

/// The script with this workload name.
pub fn find(name: &str) -> Option<&'static Script> {
    SCRIPTS.iter().find(|script| script.name == name)
}

impl Script {
    /// Refuses options that are not valid for sysbench's tables or for this script.
    pub fn check(&self, options: &SysbenchOptions) -> crate::error::Result<()> {
        options.check(self.name)?;
        if self.steps.iter().any(|step| step.reads_first_table_only()) {
            options.check_one_table(self.name)?;
        }
        Ok(())
    }

    /// The clients of this script. `options` must have passed `check`.
    pub fn roles(&'static self, options: &SysbenchOptions, clients: u64, seed: u64, pace: Pace) -> Vec<Role> {
        let (ids, statements) = Ids::assign(&self.kinds(options), options.tables);
        let stream = |client| {
            Box::new(SysbenchClient::new(self, options, ids, Place { client, clients, seed }))
                as Box<dyn Client>
        };
        vec![Role { name: ROLE, statements, clients: (0..clients).map(stream).collect(), pace }]
    }

    fn kinds(&self, options: &SysbenchOptions) -> Vec<Kind> {
        let ends: &[Kind] = if self.is_transaction(options) { &[Kind::Begin, Kind::Commit] } else { &[] };
        let kinds = self.steps.iter().flat_map(|step| step.kinds());
        ends.iter().copied().chain(kinds).collect()
    }

    fn is_transaction(&self, options: &SysbenchOptions) -> bool {
        self.has_transaction && !options.skip_trx
    }
}

impl Step {
    fn kinds(self) -> Vec<Kind> {
        match self {
            Self::PointSelects(_) => vec![Kind::PointSelect],
            Self::Range(kind) => vec![kind],
            Self::IndexUpdate => vec![Kind::IndexUpdate],
            Self::NonIndexUpdate => vec![Kind::NonIndexUpdate],
            Self::Delete => vec![Kind::Delete],
            Self::DeleteInsert => vec![Kind::Delete, Kind::Insert],
            Self::Insert => vec![Kind::InsertText],
            Self::RandomPoints => vec![Kind::RandomPoints],
            Self::RandomRanges => vec![Kind::RandomRanges],
        }
    }

    fn reads_first_table_only(self) -> bool {
        matches!(self, Self::RandomPoints | Self::RandomRanges)
    }
}

#[cfg(test)]
mod tests;
