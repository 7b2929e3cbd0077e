//! pgbench's three built-in scripts, as sent by PostgreSQL 18's pgbench (`--protocol=prepared`: BEGIN and END
//! are prepared, too), and an additional script on the same tables: a sum over many accounts.

mod client;
mod table;

use super::options::PgbenchOptions;
use super::{Client, Pace, Place, Role, Statement};

pub use table::data_set;

use client::PgbenchClient;

/// The name of the only role.
const ROLE: &str = "main";

/// Branches per unit of scale.
const BRANCHES: i64 = 1;
/// Tellers per unit of scale.
const TELLERS: i64 = 10;
/// Accounts per unit of scale.
const ACCOUNTS: i64 = 100_000;
/// Accounts per sum. Arbitrary: about 17 pages, roughly ten times the cost of finding the first one.
const SUMMED: i64 = 1000;

/// The script that pgbench does not have.
const AGGREGATE: &str = "pgbench-aggregate";

/// One of the scripts.
#[derive(Debug, PartialEq, Eq)]
pub struct Script {
    /// The workload's name.
    pub name: &'static str,
    /// Its statements, in order; every transaction executes each one once.
    calls: &'static [Call],
}

/// A statement of the scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Begin,
    UpdateAccount,
    SelectAccount,
    SumAccounts,
    UpdateTeller,
    UpdateBranch,
    InsertHistory,
    End,
}

/// All scripts.
pub static SCRIPTS: [Script; 4] = [
    Script {
        name: "pgbench-tpcb",
        calls: &[
            Call::Begin,
            Call::UpdateAccount,
            Call::SelectAccount,
            Call::UpdateTeller,
            Call::UpdateBranch,
            Call::InsertHistory,
            Call::End,
        ],
    },
    Script {
        name: "pgbench-simple-update",
        calls: &[Call::Begin, Call::UpdateAccount, Call::SelectAccount, Call::InsertHistory, Call::End],
    },
    Script { name: "pgbench-select", calls: &[Call::SelectAccount] },
    Script { name: AGGREGATE, calls: &[Call::SumAccounts] },
];

/// The script with this workload name.
pub fn find(name: &str) -> Option<&'static Script> {
    SCRIPTS.iter().find(|script| script.name == name)
}

impl Script {
    /// Refuses sizes that pgbench's tables cannot hold.
    pub fn check(&self, options: &PgbenchOptions) -> crate::error::Result<()> {
        options.check(self.name)
    }

    /// The clients of this script. `options` must have passed `check`.
    pub fn roles(&self, options: &PgbenchOptions, clients: u64, seed: u64, pace: Pace) -> Vec<Role> {
        let stream = |client| {
            Box::new(PgbenchClient::new(self.calls, options, Place { client, clients, seed }))
                as Box<dyn Client>
        };
        let statements = self.calls.iter().map(|call| call.statement()).collect();
        vec![Role { name: ROLE, statements, clients: (0..clients).map(stream).collect(), pace }]
    }
}

impl Call {
    fn statement(self) -> Statement {
        let (name, sql) = match self {
            Self::Begin => ("begin", "BEGIN;"),
            Self::UpdateAccount => {
                ("update-account", "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2;")
            }
            Self::SelectAccount => {
                ("select-account", "SELECT abalance FROM pgbench_accounts WHERE aid = $1;")
            }
            // With BETWEEN the server would choose custom plans: its estimate for an unknown range is higher.
            Self::SumAccounts => (
                "sum-accounts",
                "SELECT sum(abalance) FROM (SELECT abalance FROM pgbench_accounts WHERE aid >= $1 \
                 ORDER BY aid LIMIT 1000) AS following;",
            ),
            Self::UpdateTeller => {
                ("update-teller", "UPDATE pgbench_tellers SET tbalance = tbalance + $1 WHERE tid = $2;")
            }
            Self::UpdateBranch => {
                ("update-branch", "UPDATE pgbench_branches SET bbalance = bbalance + $1 WHERE bid = $2;")
            }
            Self::InsertHistory => (
                "insert-history",
                "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
                 VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP);",
            ),
            Self::End => ("end", "END;"),
        };
        Statement::prepared(name, sql)
    }
}

#[cfg(test)]
mod tests;
