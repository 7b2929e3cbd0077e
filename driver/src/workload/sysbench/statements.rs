//! The statements of sysbench's scripts, as PostgreSQL receives them: `$1`, `$2`, … replace `?`.

use crate::workload::{Statement, StatementId};

/// A statement of a script; most exist once per table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Begin,
    Commit,
    PointSelect,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    Insert,
    /// The statement of the script `oltp_insert`, which prepares nothing.
    InsertText,
    RandomPoints,
    RandomRanges,
}

const KINDS: usize = 14;

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Commit => "commit",
            Self::PointSelect => "point-select",
            Self::SimpleRange => "simple-range",
            Self::SumRange => "sum-range",
            Self::OrderRange => "order-range",
            Self::DistinctRange => "distinct-range",
            Self::IndexUpdate => "index-update",
            Self::NonIndexUpdate => "non-index-update",
            Self::Delete => "delete",
            Self::Insert | Self::InsertText => "insert",
            Self::RandomPoints => "random-points",
            Self::RandomRanges => "random-ranges",
        }
    }

    /// The text; `#` is the table's number in statements that exist once per table.
    fn sql(self) -> &'static str {
        match self {
            Self::Begin => "BEGIN",
            Self::Commit => "COMMIT",
            Self::PointSelect => "SELECT c FROM sbtest# WHERE id=$1",
            Self::SimpleRange => "SELECT c FROM sbtest# WHERE id BETWEEN $1 AND $2",
            Self::SumRange => "SELECT SUM(k) FROM sbtest# WHERE id BETWEEN $1 AND $2",
            Self::OrderRange => "SELECT c FROM sbtest# WHERE id BETWEEN $1 AND $2 ORDER BY c",
            Self::DistinctRange => "SELECT DISTINCT c FROM sbtest# WHERE id BETWEEN $1 AND $2 ORDER BY c",
            Self::IndexUpdate => "UPDATE sbtest# SET k=k+1 WHERE id=$1",
            Self::NonIndexUpdate => "UPDATE sbtest# SET c=$1 WHERE id=$2",
            Self::Delete => "DELETE FROM sbtest# WHERE id=$1",
            Self::Insert => "INSERT INTO sbtest# (id, k, c, pad) VALUES ($1, $2, $3, $4)",
            Self::InsertText => "",
            Self::RandomPoints => RANDOM_POINTS,
            Self::RandomRanges => RANDOM_RANGES,
        }
    }
}

/// Types declared by sysbench: bigint for every integer, varchar for every text. They determine the server's
/// choice of operators.
const INT8: u32 = 20;
const VARCHAR: u32 = 1043;

// The whitespace is sysbench's.
const RANDOM_POINTS: &str = "        SELECT id, k, c, pad
          FROM sbtest1
          WHERE k IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        ";
const RANDOM_RANGES: &str = "        SELECT count(k)
          FROM sbtest1
          WHERE k BETWEEN $1 AND $2 OR k BETWEEN $3 AND $4 OR k BETWEEN $5 AND $6 OR k BETWEEN $7 AND $8 \
    OR k BETWEEN $9 AND $10 OR k BETWEEN $11 AND $12 OR k BETWEEN $13 AND $14 OR k BETWEEN $15 AND $16 \
    OR k BETWEEN $17 AND $18 OR k BETWEEN $19 AND $20";

impl Kind {
    fn parameter_types(self) -> &'static [u32] {
        match self {
            Self::Begin | Self::Commit | Self::InsertText => &[],
            Self::PointSelect | Self::IndexUpdate | Self::Delete => &[INT8],
            Self::SimpleRange | Self::SumRange | Self::OrderRange | Self::DistinctRange => &[INT8; 2],
            Self::NonIndexUpdate => &[VARCHAR, INT8],
            Self::Insert => &[INT8, INT8, VARCHAR, VARCHAR],
            Self::RandomPoints => &[INT8; 10],
            Self::RandomRanges => &[INT8; 20],
        }
    }
}

/// The statement indices of a role, by kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ids([StatementId; KINDS]);

impl Ids {
    /// Creates the statements of `kinds`: one per table for those with a table number, otherwise one.
    pub(super) fn assign(kinds: &[Kind], tables: i64) -> (Self, Vec<Statement>) {
        let mut first = [0; KINDS];
        let mut statements = Vec::new();
        for kind in kinds {
            first[*kind as usize] = statements.len();
            let numbers = if kind.sql().contains('#') { 1..=tables } else { 1..=1 };
            statements.extend(numbers.map(|number| kind.statement(number)));
        }
        (Self(first), statements)
    }

    /// The statement of a kind that exists only once.
    pub(super) fn only(&self, kind: Kind) -> StatementId {
        self.0[kind as usize]
    }

    /// The statement of a kind for a table, counted from 0.
    pub(super) fn of_table(&self, kind: Kind, table: usize) -> StatementId {
        self.0[kind as usize] + table
    }
}

impl Kind {
    fn statement(self, table: i64) -> Statement {
        if self == Self::InsertText {
            return Statement::unprepared(self.name());
        }
        Statement {
            parameter_types: self.parameter_types(),
            has_binary_results: true,
            ..Statement::prepared(self.name(), self.sql().replace('#', &table.to_string()))
        }
    }
}
