//! The options of workloads, and the transactions and rows that come of them.

use pgdyno_driver::workload::catalogue::{Request, ends_by_itself, hooks, names, roles, tables};
use pgdyno_driver::workload::{Next, Pace, Role, Transaction};
use serde_json::Value;

const SERVER_VERSION: u32 = 180_000;
const TRANSACTIONS: usize = 4;
const ROWS: u64 = 3;

/// The first three bytes choose workload, clients and seed; the rest are its options.
pub fn check(data: &[u8]) {
    let [workload, clients, seed, options @ ..] = data else { return };
    let Ok(options) = serde_json::from_slice::<Value>(options) else { return };
    let names = names();
    let name = &names[usize::from(*workload) % names.len()];
    let request =
        Request { name, options: &options, clients: u64::from(clients % 4) + 1, seed: u64::from(*seed) };
    if let Ok(roles) = roles(&request, Pace::Closed) {
        roles.into_iter().for_each(issue);
    }
    // Errors of the options once more; the clean-up, which has no clients, has them only here.
    let _ = (hooks(&request, SERVER_VERSION), ends_by_itself(&request));
    for table in tables(name, &options, request.seed).into_iter().flatten().take(2) {
        let mut rows = Vec::new();
        table.write_rows(0..ROWS.min(table.rows), &mut rows);
        table.write_rows(table.rows.saturating_sub(ROWS)..table.rows, &mut rows);
        assert_eq!(rows.is_empty(), table.rows == 0);
    }
}

/// Lets every client issue some transactions, as if each were committed at once.
fn issue(mut role: Role) {
    let statements = role.statements.len();
    for client in &mut role.clients {
        for _ in 0..TRANSACTIONS {
            let mut transaction = Transaction::default();
            if client.next(&mut transaction) != Next::Ready {
                break;
            }
            for call in transaction.calls() {
                assert!(call.statement < statements);
                client.receive(call.statement, Some(i64::MAX));
            }
            client.committed(u64::MAX);
        }
    }
}
