//! For tests: transactions of other programs, as logged by a server, for comparison.

use std::collections::HashMap;

use serde::Deserialize;

use super::{Next, Role, StatementKind, Transaction};

/// One statement: how it was sent, its text, its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Recorded {
    sent: String,
    pub(super) text: String,
    pub(super) parameters: Vec<String>,
}

#[derive(Deserialize)]
struct Recording {
    #[serde(rename = "made_with")]
    _made_with: String,
    #[serde(flatten)]
    transactions: HashMap<String, Vec<Recorded>>,
}

/// The recorded transaction of a workload, masked.
pub(super) fn recorded(fixture: &str, workload: &str) -> Vec<Recorded> {
    let mut recording: Recording = serde_json::from_str(fixture).unwrap();
    masked(&recording.transactions.remove(workload).unwrap())
}

/// The next transaction of a client, as a server would log it.
pub(super) fn next_transaction(role: &mut Role, client: usize) -> Vec<Recorded> {
    let mut transaction = Transaction::default();
    assert_eq!(role.clients[client].next(&mut transaction), Next::Ready);
    let logged = |call| {
        let arguments =
            transaction.arguments(call).map(|bytes| String::from_utf8(bytes.unwrap().to_vec()).unwrap());
        let mut parameters: Vec<String> = arguments.collect();
        let statement = &role.statements[call.statement];
        match statement.kind {
            StatementKind::Prepared => {
                Recorded { sent: "prepared".to_owned(), text: statement.sql.clone(), parameters }
            }
            StatementKind::Unprepared => {
                Recorded { sent: "text".to_owned(), text: parameters.remove(0), parameters }
            }
        }
    };
    transaction.calls().iter().map(logged).collect()
}

/// The statements with every number replaced: one of eleven digits by `D`, any other by `n`.
pub(super) fn masked(transaction: &[Recorded]) -> Vec<Recorded> {
    transaction.iter().cloned().map(mask_statement).collect()
}

fn mask_statement(statement: Recorded) -> Recorded {
    let is_text = statement.sent == "text";
    Recorded {
        text: if is_text { mask(&statement.text) } else { statement.text },
        parameters: statement.parameters.iter().map(|parameter| mask(parameter)).collect(),
        sent: statement.sent,
    }
}

fn mask(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits = rest[start..].bytes().take_while(u8::is_ascii_digit).count();
        masked.push_str(&rest[..start]);
        masked.push(if digits == 11 { 'D' } else { 'n' });
        rest = &rest[start + digits..];
    }
    // The sign of an amount is random, too.
    (masked + rest).replace("-n", "n")
}
