//! A workload's prepared statements with sample parameters, for planning them in advance.

use serde::Serialize;

use super::{Next, Role, Statement, StatementKind, Transaction};

/// Default number of transactions per client to take parameters from. Arbitrary: it covers every statement of
/// sysbench with eight tables, and planning them all takes about a second.
pub const TRANSACTIONS: usize = 20;

/// Statements with parameters, and the number of sampled transactions.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// Number of transactions, from one client of each role.
    pub transactions: usize,
    /// The called statements, in the order of their declaration.
    pub statements: Vec<SampledStatement>,
}

/// A prepared statement as the server receives it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct SampledStatement {
    /// Its name in results.
    pub name: &'static str,
    /// SQL with `$1`, `$2`, ….
    pub sql: String,
    /// Declared parameter types (OIDs); the server infers missing ones.
    pub parameter_types: &'static [u32],
    /// The parameters of each call, as text or NULL.
    pub calls: Vec<Vec<Option<String>>>,
}

/// Takes the first transactions of every role's first client. Stops early at a client that waits for an
/// answer.
pub fn sample(roles: &mut [Role], limit: usize) -> Sample {
    let mut sample = Sample { transactions: 0, statements: Vec::new() };
    for role in roles {
        let calls = calls_of(role, limit, &mut sample.transactions);
        let called = role.statements.iter().zip(calls).filter(|(_, calls)| !calls.is_empty());
        sample.statements.extend(called.map(|(statement, calls)| sampled(statement, calls)));
    }
    sample
}

fn calls_of(role: &mut Role, limit: usize, transactions: &mut usize) -> Vec<Vec<Vec<Option<String>>>> {
    let mut calls = vec![Vec::new(); role.statements.len()];
    let Some(client) = role.clients.first_mut() else { return calls };
    let mut transaction = Transaction::default();
    for _ in 0..limit {
        transaction.clear();
        if client.next(&mut transaction) != Next::Ready {
            break;
        }
        *transactions += 1;
        for call in transaction.calls() {
            if role.statements[call.statement].kind == StatementKind::Prepared {
                let text =
                    |bytes: Option<&[u8]>| bytes.map(|text| String::from_utf8_lossy(text).into_owned());
                calls[call.statement].push(transaction.arguments(call).map(text).collect());
            }
        }
    }
    calls
}

fn sampled(statement: &Statement, calls: Vec<Vec<Option<String>>>) -> SampledStatement {
    SampledStatement {
        name: statement.name,
        sql: statement.sql.clone(),
        parameter_types: statement.parameter_types,
        calls,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::workload::Pace;
    use crate::workload::catalogue::{Request, roles};

    fn sample_of(name: &str) -> Sample {
        let options = if name.starts_with("sysbench") { json!({"tables": 1}) } else { json!({}) };
        let request = Request { name, options: &options, clients: 1, seed: 1 };
        sample(&mut roles(&request, Pace::Closed).unwrap(), TRANSACTIONS)
    }

    #[test]
    fn a_script_of_sysbench_has_its_statements_with_their_parameters() {
        let sample = sample_of("sysbench-read-only");
        assert_eq!(sample.transactions, 20);
        let names: Vec<_> = sample.statements.iter().map(|one| (one.name, one.calls.len())).collect();
        assert_eq!(
            names,
            [
                ("begin", 20),
                ("commit", 20),
                ("point-select", 200),
                ("simple-range", 20),
                ("sum-range", 20),
                ("order-range", 20),
                ("distinct-range", 20),
            ]
        );
        let range = &sample.statements[3];
        assert_eq!(range.sql, "SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2");
        assert_eq!(range.parameter_types, [20, 20]);
        let bounds: Vec<i64> =
            range.calls[0].iter().map(|text| text.as_ref().unwrap().parse().unwrap()).collect();
        assert_eq!(bounds[1] - bounds[0], 99);
    }

    #[test]
    fn what_is_sent_as_text_is_not_prepared() {
        let sample = sample_of("sysbench-insert");
        assert_eq!((sample.transactions, sample.statements.len()), (20, 0));
    }
}
