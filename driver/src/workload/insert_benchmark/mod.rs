//! The Insert Benchmark of Mark Callaghan (github.com/mdcallag/mytools, `bench/ibench`, June 2026): ten steps on
//! one table per client, which grows at its new end and is deleted from at its old end.
//!
//! Start with `step`: it says what each step does and makes its clients. `ledger` is what the clients of one
//! table share. Index builds, the clean-up and waiting are the caller's; `schema` has the statements for them.
//!
//! Statements and values are those of the reference client. Four things differ on purpose: identifiers have 64
//! bits, every stream is seeded, the time that goes into rows is made up (see `timestamp`), and prepared
//! statements travel in the extended protocol instead of as `EXECUTE` in text.

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

/// How many rows a range query returns at most, and how many keys a point query asks for
/// (the reference's `--rows_per_query`).
const ROWS_PER_QUERY: usize = 10;

/// The stream of random numbers of one client of a role, in one step.
fn stream(seed: u64, step: Step, role: &str, client: u64) -> Random {
    Random::stream(seed, &format!("{} {role}", step.name()), client)
}
