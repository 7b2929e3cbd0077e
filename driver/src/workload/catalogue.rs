//! The catalogue of workloads: from a name and options to clients, and to the tables they need.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::data_set::Table;
use super::options::{PgbenchOptions, SysbenchOptions};
use super::{Pace, Role, pgbench, sysbench};
use crate::error::{Error, Result};

/// SQLSTATEs after which any transaction may be tried again: serialisation failure, deadlock.
const CONFLICTS: [&str; 2] = ["40001", "40P01"];
/// Two clients of sysbench may delete and insert the same row; sysbench goes on after that, too.
const UNIQUE_VIOLATION: &str = "23505";

/// The names of all workloads.
pub fn names() -> Vec<&'static str> {
    let sysbench = sysbench::SCRIPTS.iter().map(|script| script.name);
    sysbench.chain(pgbench::SCRIPTS.iter().map(|script| script.name)).collect()
}

/// Makes the clients of a workload.
pub fn roles(name: &str, options: &Value, clients: u64, seed: u64, pace: Pace) -> Result<Vec<Role>> {
    if let Some(script) = sysbench::find(name) {
        let options: SysbenchOptions = read(name, options)?;
        script.check(&options)?;
        return Ok(script.roles(&options, clients, seed, pace));
    }
    let script = pgbench::find(name).ok_or_else(|| unknown(name))?;
    let options: PgbenchOptions = read(name, options)?;
    script.check(&options)?;
    Ok(script.roles(&options, clients, seed, pace))
}

/// The tables that a workload starts from. Equal seeds give equal rows.
pub fn tables(name: &str, options: &Value, seed: u64) -> Result<Vec<Table>> {
    if let Some(script) = sysbench::find(name) {
        let options: SysbenchOptions = read(name, options)?;
        script.check(&options)?;
        return Ok(sysbench::data_set(&options, seed));
    }
    let script = pgbench::find(name).ok_or_else(|| unknown(name))?;
    let options: PgbenchOptions = read(name, options)?;
    script.check(&options)?;
    Ok(pgbench::data_set(&options))
}

/// SQLSTATEs after which the same transaction is tried again.
pub fn retried(name: &str) -> Vec<String> {
    let own = sysbench::find(name).map(|_| UNIQUE_VIOLATION);
    CONFLICTS.into_iter().chain(own).map(String::from).collect()
}

fn read<Options: DeserializeOwned>(name: &str, options: &Value) -> Result<Options> {
    Options::deserialize(options).map_err(|error| {
        Error::new(format!("cannot read the options of workload \"{name}\"")).detail(error.to_string())
    })
}

fn unknown(name: &str) -> Error {
    Error::new(format!("no workload \"{name}\"")).hint(format!("known: {}", names().join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_name_has_clients_and_tables() {
        for name in names() {
            let roles = roles(name, &json!({}), 2, 1, Pace::Closed).unwrap();
            assert_eq!(roles[0].clients.len(), 2, "{name}");
            assert!(!tables(name, &json!({}), 1).unwrap().is_empty(), "{name}");
        }
    }

    #[test]
    fn an_unknown_workload_is_answered_with_those_that_are_known() {
        let error = roles("sysbench-raed-only", &json!({}), 1, 1, Pace::Closed).err().unwrap();
        assert_eq!(error.message, "no workload \"sysbench-raed-only\"");
        assert!(error.hint.unwrap().contains("sysbench-read-only"));
    }

    #[test]
    fn an_unknown_option_is_named() {
        let error = roles("pgbench-select", &json!({"scael": 1}), 1, 1, Pace::Closed).err().unwrap();
        assert_eq!(error.message, "cannot read the options of workload \"pgbench-select\"");
        assert!(error.detail.unwrap().contains("unknown field `scael`"));
    }
}
