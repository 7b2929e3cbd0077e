//! The client that inserts.

use std::sync::Arc;

use crate::workload::{Client, Next, Statement, Transaction};

use super::ledger::Ledger;
use super::rows::RowWriter;
use super::schema::table;
use super::timestamp::StatementClock;

/// The role's name.
pub const ROLE: &str = "insert";

/// The statements of the role.
pub fn statements() -> Vec<Statement> {
    vec![Statement::unprepared("insert")]
}

/// Inserts `rows_per_commit` rows per statement; every statement is a transaction.
pub struct Inserter {
    ledger: Arc<Ledger>,
    rows: RowWriter,
    rows_per_commit: u64,
    clock: StatementClock,
    /// The statement up to its rows.
    head: String,
    timestamp: Vec<u8>,
}

impl Inserter {
    /// Inserts into the table of `client`.
    pub fn new(
        client: u64,
        ledger: Arc<Ledger>,
        rows: RowWriter,
        rows_per_commit: u64,
        clock: StatementClock,
    ) -> Self {
        let columns = "dateandtime,cashregisterid,customerid,productid,price,data";
        let head = format!("insert into {} ({columns}) values ", table(client));
        Self { ledger, rows, rows_per_commit, clock, head, timestamp: Vec::new() }
    }

    fn write_statement(&mut self, out: &mut Vec<u8>) {
        self.timestamp.clear();
        self.clock.write(self.ledger.inserts(), &mut self.timestamp);
        out.extend_from_slice(self.head.as_bytes());
        for row in 0..self.rows_per_commit {
            if row > 0 {
                out.extend_from_slice(b",\n");
            }
            self.rows.write_row(&self.timestamp, out);
        }
    }
}

impl Client for Inserter {
    fn next(&mut self, transaction: &mut Transaction) -> Next {
        let next = self.ledger.next_insert();
        if next == Next::Ready {
            transaction.call(0).text(|out| self.write_statement(out));
        }
        next
    }

    fn committed(&mut self, _rows: u64) {
        self.ledger.insert_committed();
    }
}
