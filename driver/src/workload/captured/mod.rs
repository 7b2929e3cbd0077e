//! Workloads captured from a server: statements, the transactions they form, and how to draw each parameter.
//! The tables are a copy of the server's, so there are none to load.

mod client;
mod draw;
mod options;
mod parameter;
mod values;

#[cfg(test)]
mod refusals;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Client, Pace, Place, Role, Statement};

pub use options::CapturedOptions;

use client::CapturedClient;
use parameter::Texts;

/// The name of the workload.
pub const NAME: &str = "captured";
/// The name of its only role.
const ROLE: &str = "main";

/// Creates the clients. `options` must have passed `check`.
pub fn roles(options: &CapturedOptions, clients: u64, seed: u64, pace: Pace) -> Vec<Role> {
    let statements = options.statements.iter().map(statement).collect();
    let samples: Vec<Arc<Texts>> = options.samples.iter().map(|one| Arc::new(Texts::new(one))).collect();
    let stream = |client| {
        Box::new(CapturedClient::new(options, &samples, Place { client, clients, seed })) as Box<dyn Client>
    };
    vec![Role { name: ROLE, statements, clients: (0..clients).map(stream).collect(), pace }]
}

fn statement(given: &options::CapturedStatement) -> Statement {
    let name = interned(&given.name);
    if !given.prepared {
        return Statement::unprepared(name);
    }
    Statement { quotes_numbers: true, ..Statement::prepared(name, given.sql.clone()) }
}

/// Interns a statement name for the life of the process: names are keys of the counts.
fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let kept: &'static str = name.to_owned().leak();
    names.insert(kept);
    kept
}
