//! The clients that query during inserts and deletes: ranges of the secondary indexes, or keys.

use std::ops::Range;
use std::sync::Arc;

use crate::random::Random;
use crate::workload::{Client, Next, Statement, StatementId, Transaction};

use super::ledger::Ledger;
use super::schema::table;
use super::{Domains, ROWS_PER_QUERY};

/// The role's name.
pub const ROLE: &str = "query";

/// Number of point queries after which the largest key is read again.
const QUERIES_PER_RESYNC: u64 = 100;

/// The range queries, in the order of a table's statements.
const RANGES: [(&str, &str, &str); 3] = [
    ("market", "productid, customerid, price", "productid >= $1"),
    // Strictly greater, as in the reference: the last cash register finds no rows.
    ("register", "cashregisterid, customerid, price", "cashregisterid > $1"),
    ("pdc", "price, dateandtime, customerid", "price >= $1"),
];

/// The statements of the role in a step with range queries: three per table.
pub fn range_statements(clients: u64) -> Vec<Statement> {
    (0..clients).flat_map(|client| RANGES.map(|range| range_statement(client, range))).collect()
}

fn range_statement(client: u64, (name, columns, condition): (&'static str, &str, &str)) -> Statement {
    let table = table(client);
    Statement::prepared(
        name,
        format!(
            "SELECT {columns} FROM {table} WHERE ({condition}) ORDER BY {columns} LIMIT {ROWS_PER_QUERY}"
        ),
    )
}

const MAX_ID: StatementId = 0;

/// The statements of the role in a step with point queries: one that reads the largest key, and one per
/// table.
pub fn point_statements(clients: u64) -> Vec<Statement> {
    std::iter::once(Statement::unprepared("max-id")).chain((0..clients).map(point_statement)).collect()
}

fn point_statement(client: u64) -> Statement {
    let parameters: Vec<String> = (1..=ROWS_PER_QUERY).map(|number| format!("${number}")).collect();
    let (table, parameters) = (table(client), parameters.join(","));
    Statement::prepared(
        "point",
        format!("SELECT transactionid, productid, data FROM {table} WHERE transactionid in ({parameters})"),
    )
}

/// Ends a querying client when the inserts of its table are complete.
pub struct QueryEnd {
    ledger: Arc<Ledger>,
    queries_per_check: u64,
    queries: u64,
}

impl QueryEnd {
    /// Checks after every `queries_per_check` queries: sixteen in the reference.
    pub fn new(ledger: Arc<Ledger>, queries_per_check: u64) -> Self {
        Self { ledger, queries_per_check, queries: 0 }
    }

    fn is_reached(&self) -> bool {
        self.queries.is_multiple_of(self.queries_per_check) && self.ledger.has_all_inserts()
    }
}

/// Draws one of the three range queries, and the start of its range.
pub struct RangeQueries {
    end: QueryEnd,
    first_statement: StatementId,
    /// Number of distinct values of each query's first column.
    values: [i64; 3],
    random: Random,
}

impl RangeQueries {
    /// Queries the table of `client`.
    pub fn new(client: u64, end: QueryEnd, domains: Domains, random: Random) -> Self {
        let values = [domains.products, domains.cash_registers, domains.prices];
        Self { end, first_statement: client as usize * RANGES.len(), values, random }
    }
}

impl Client for RangeQueries {
    fn statements(&self, _all: usize) -> Range<StatementId> {
        self.first_statement..self.first_statement + RANGES.len()
    }

    fn next(&mut self, transaction: &mut Transaction) -> Next {
        if self.end.is_reached() {
            return Next::Finished;
        }
        let range = self.random.between(0, 2) as usize;
        let start = self.random.between(0, self.values[range] - 1);
        transaction.call(self.first_statement + range).int(start);
        Next::Ready
    }

    fn committed(&mut self, _rows: u64) {
        self.end.queries += 1;
    }
}

/// Draws keys between the estimated oldest and the largest one.
pub struct PointQueries {
    end: QueryEnd,
    statement: StatementId,
    max_id_sql: String,
    random: Random,
    max_id: i64,
    needs_max_id: bool,
    is_query: bool,
}

impl PointQueries {
    /// Queries the table of `client`.
    pub fn new(client: u64, end: QueryEnd, random: Random) -> Self {
        Self {
            end,
            statement: 1 + client as usize,
            max_id_sql: format!("select max(transactionid) from {}", table(client)),
            random,
            max_id: 0,
            needs_max_id: true,
            is_query: false,
        }
    }

    fn write_query(&mut self, transaction: &mut Transaction) {
        // As in the reference, the largest key itself is never requested. If the estimate exceeds it, or the
        // table is empty, all ten keys equal the estimate.
        let oldest = self.end.ledger.oldest();
        let newest = oldest.max(self.max_id - 1);
        transaction.call(self.statement);
        for _ in 0..ROWS_PER_QUERY {
            transaction.int(self.random.between(oldest, newest));
        }
    }
}

impl Client for PointQueries {
    fn statements(&self, _all: usize) -> Range<StatementId> {
        self.statement..self.statement + 1 // reading the largest key is not prepared
    }

    fn next(&mut self, transaction: &mut Transaction) -> Next {
        if self.end.is_reached() {
            return Next::Finished;
        }
        self.is_query = !self.needs_max_id;
        if self.is_query {
            self.write_query(transaction);
        } else {
            transaction.call_for_value(MAX_ID).text(|out| out.extend_from_slice(self.max_id_sql.as_bytes()));
        }
        Next::Ready
    }

    fn receive(&mut self, _statement: StatementId, value: Option<i64>) {
        self.max_id = value.unwrap_or(0);
        self.needs_max_id = false;
    }

    /// Reading the largest key does not count as a query.
    fn is_counted(&self) -> bool {
        self.is_query
    }

    fn committed(&mut self, _rows: u64) {
        if self.is_query {
            self.end.queries += 1;
            self.needs_max_id = self.end.queries.is_multiple_of(QUERIES_PER_RESYNC);
        }
    }
}
