//! Mark Callaghan's Insert Benchmark (github.com/mdcallag/mytools, `bench/ibench`, June 2026): ten steps on
//! one table per client, with inserts at the high end of the key and deletes at the low end.
//!
//! Start with `step`, which defines the steps and creates their clients. `ledger` is the shared state of one
//! table's clients. Index builds, the clean-up and waiting are left to the caller; `schema` has the
//! statements for them.
//!
//! Statements and values are those of the reference client, with four intended differences: identifiers have
//! 64 bits, every stream is seeded, timestamps in rows are synthetic (see `timestamp`), and prepared
//! statements use the extended protocol instead of `EXECUTE` in text.

mod delete;
mod insert;
mod ledger;
mod maker;
mod options;
mod query;
mod rows;
pub mod schema;
mod step;
#[cfg(test)]
mod tests;
mod timestamp;

pub use options::{DataLength, Domains, Ends, Mode, Options, Rows, Timestamps};
pub use step::{Step, roles};

use crate::random::Random;

/// Maximum number of rows of a range query, and number of keys of a point query (the reference's
/// `--rows_per_query`).
const ROWS_PER_QUERY: usize = 10;

/// The random stream of one client of a role, in one step.
fn stream(seed: u64, step: Step, role: &str, client: u64) -> Random {
    Random::stream(seed, &format!("{} {role}", step.name()), client)
}
