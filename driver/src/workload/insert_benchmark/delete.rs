//! The client that deletes the oldest rows.

use std::sync::Arc;

use crate::workload::{Client, Next, Statement, Transaction};

use super::ledger::Ledger;
use super::schema::table;

/// The role's name.
pub const ROLE: &str = "delete";

/// The statements of the role.
pub fn statements() -> Vec<Statement> {
    vec![Statement::unprepared("delete")]
}

/// Deletes as many rows per statement as an insert statement adds; every statement is a transaction.
pub struct Deleter {
    ledger: Arc<Ledger>,
    table: String,
    rows_per_commit: u64,
}

impl Deleter {
    /// Deletes from the table of `client`.
    pub fn new(client: u64, ledger: Arc<Ledger>, rows_per_commit: u64) -> Self {
        Self { ledger, table: table(client), rows_per_commit }
    }

    fn statement(&self) -> String {
        let Self { table, rows_per_commit, .. } = self;
        // Without the lower bound, each statement would scan the index entries of all dead rows.
        format!(
            "delete from {table} where transactionid in (select transactionid from {table} \
             where transactionid >= {} order by transactionid asc limit {rows_per_commit})",
            self.ledger.oldest()
        )
    }
}

impl Client for Deleter {
    fn next(&mut self, transaction: &mut Transaction) -> Next {
        let next = self.ledger.next_delete();
        if next == Next::Ready {
            transaction.call(0).text(|out| out.extend_from_slice(self.statement().as_bytes()));
        }
        next
    }

    fn committed(&mut self, _rows: u64) {
        self.ledger.delete_committed(self.rows_per_commit);
    }
}
