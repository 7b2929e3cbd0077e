//! The client that represents the reference's process `statement_maker`. The server sees only a connection
//! that periodically reads the smallest key. Without deletes it is idle.
//!
//! It is separate from the deleting client, so that reading the key affects neither the schedule of deletes
//! nor their latency; deletes wait for it.

use std::sync::Arc;

use crate::workload::{Client, Next, Statement, StatementId, Transaction};

use super::ledger::Ledger;
use super::schema::table;

/// The role's name.
pub const ROLE: &str = "maker";

/// The statements of the role.
pub fn statements() -> Vec<Statement> {
    vec![Statement::unprepared("min-id")]
}

/// Reads the smallest key when the ledger requires it.
pub struct Maker {
    ledger: Arc<Ledger>,
    sql: String,
}

impl Maker {
    /// Reads the table of `client`.
    pub fn new(client: u64, ledger: Arc<Ledger>) -> Self {
        Self { ledger, sql: format!("select min(transactionid) from {}", table(client)) }
    }
}

impl Client for Maker {
    fn next(&mut self, transaction: &mut Transaction) -> Next {
        let next = self.ledger.next_resync();
        if next == Next::Ready {
            transaction.call_for_value(0).text(|out| out.extend_from_slice(self.sql.as_bytes()));
        }
        next
    }

    fn receive(&mut self, _statement: StatementId, value: Option<i64>) {
        self.ledger.resynced(value);
    }
}
