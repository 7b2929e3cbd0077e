//! The catalogue of workloads: creates clients and tables from a name and options.
//!
//! Each step of the Insert Benchmark is a workload (`insert-benchmark-l.i0`, …), and so is the clean-up
//! between its writing and its reading steps, which has hooks but no clients.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::captured::{self, CapturedOptions};
use super::data_set::Table;
use super::insert_benchmark::{self, Ends, Step, schema};
use super::options::{PgbenchOptions, SysbenchOptions};
use super::query::{self, QueryOptions};
use super::{Hooks, Pace, Role, pgbench, scan, sysbench};
use crate::error::{Error, Result};

/// SQLSTATEs after which any transaction is retried: serialization failure, deadlock.
const CONFLICTS: [&str; 2] = ["40001", "40P01"];
/// Two clients of sysbench may delete and insert the same row; sysbench continues after that, too.
const UNIQUE_VIOLATION: &str = "23505";

const INSERT_BENCHMARK: &str = "insert-benchmark-";
const CLEAN_UP: &str = "clean-up";

/// The names of all workloads.
pub fn names() -> Vec<String> {
    let sysbench = sysbench::SCRIPTS.iter().map(|script| script.name.to_string());
    let pgbench = pgbench::SCRIPTS.iter().map(|script| script.name.to_string());
    let scans = scan::SCANS.iter().map(|scan| scan.name.to_string());
    let steps = Step::ALL.iter().map(|step| step.name()).chain([CLEAN_UP]);
    let steps = steps.map(|step| format!("{INSERT_BENCHMARK}{step}"));
    let own = [query::NAME, captured::NAME].map(String::from);
    sysbench.chain(pgbench).chain(scans).chain(own).chain(steps).collect()
}

/// A workload, its options and its size.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The workload's name.
    pub name: &'a str,
    /// Its options.
    pub options: &'a Value,
    /// Number of connections, or of sets of connections.
    pub clients: u64,
    /// Random seed.
    pub seed: u64,
}

/// Creates the clients of a workload. The Insert Benchmark's steps set their own pace.
pub fn roles(request: &Request, pace: Pace) -> Result<Vec<Role>> {
    let Request { name, options, clients, seed } = *request;
    match insert_part(name) {
        Some(_) if pace != Pace::Closed => {
            return Err(Error::new(format!("workload \"{name}\" cannot have a rate"))
                .detail("a step of the Insert Benchmark has its own rate, or none"));
        }
        Some(Part::Step(step)) => return insert_benchmark::roles(step, &insert_options(request)?),
        Some(Part::CleanUp) => return Ok(Vec::new()),
        None => {}
    }
    if let Some(script) = sysbench::find(name) {
        let options: SysbenchOptions = read(name, options)?;
        script.check(&options)?;
        return Ok(script.roles(&options, clients, seed, pace));
    }
    if let Some(scan) = scan::find(name) {
        let options: SysbenchOptions = read(name, options)?;
        scan.check(&options)?;
        return Ok(scan.roles(&options, clients, seed, pace));
    }
    if name == query::NAME {
        let options: QueryOptions = read(name, options)?;
        options.check()?;
        return Ok(options.roles(clients, pace));
    }
    if name == captured::NAME {
        let options: CapturedOptions = read(name, options)?;
        options.check()?;
        return Ok(captured::roles(&options, clients, seed, pace));
    }
    let script = pgbench::find(name).ok_or_else(|| unknown(name))?;
    let options: PgbenchOptions = read(name, options)?;
    script.check(&options)?;
    Ok(script.roles(&options, clients, seed, pace))
}

/// The statements before and after a workload. `server_version` is the server's `server_version_num`.
pub fn hooks(request: &Request, server_version: u32) -> Result<Hooks> {
    let Some(part) = insert_part(request.name) else { return Ok(Hooks::default()) };
    let options = insert_options(request)?;
    let clients = 0..options.clients;
    Ok(match part {
        Part::Step(Step::LI0) => {
            Hooks { before: clients.flat_map(schema::create_table).collect(), ..Hooks::default() }
        }
        Part::Step(Step::LX) => {
            let indexes = clients.map(|client| schema::create_indexes(client).to_vec()).collect();
            Hooks { after: vec![indexes], ..Hooks::default() }
        }
        Part::Step(_) => Hooks::default(),
        Part::CleanUp => {
            let clean_up = schema::clean_up(&options, server_version);
            let vacuums = clean_up.vacuums.into_iter().map(|sql| vec![sql]).collect();
            Hooks { after: vec![vacuums, vec![vec![clean_up.checkpoint.into()]]], ..Hooks::default() }
        }
    })
}

/// Whether the workload's options set the amount of work per client, so that a count is not valid.
pub fn is_bounded(name: &str) -> bool {
    insert_part(name).is_some()
}

/// Whether the clients end by themselves: steps of the Insert Benchmark do, unless their option `ends` is
/// `time`.
pub fn ends_by_itself(request: &Request) -> Result<bool> {
    Ok(match insert_part(request.name) {
        None => false,
        Some(Part::CleanUp | Part::Step(Step::LI0 | Step::LX)) => true,
        Some(Part::Step(_)) => insert_options(request)?.ends == Ends::Count,
    })
}

/// A part of the Insert Benchmark.
#[derive(Clone, Copy)]
enum Part {
    Step(Step),
    CleanUp,
}

/// The part of the Insert Benchmark with this workload name; `None` for other workloads.
fn insert_part(name: &str) -> Option<Part> {
    let part = name.strip_prefix(INSERT_BENCHMARK)?;
    if part == CLEAN_UP {
        return Some(Part::CleanUp);
    }
    Step::ALL.into_iter().find(|known| known.name() == part).map(Part::Step)
}

fn insert_options(request: &Request) -> Result<insert_benchmark::Options> {
    let mut options = request.options.clone();
    if let Value::Object(fields) = &mut options {
        fields.insert("clients".into(), request.clients.into());
        fields.insert("seed".into(), request.seed.into());
    }
    let options: insert_benchmark::Options = read(request.name, &options)?;
    options.check()?;
    Ok(options)
}

/// The initial tables of a workload. Equal seeds give equal rows.
pub fn tables(name: &str, options: &Value, seed: u64) -> Result<Vec<Table>> {
    if insert_part(name).is_some() {
        return Err(Error::new(format!("workload \"{name}\" has no tables to load"))
            .hint("run insert-benchmark-l.i0, the first step, to create the tables"));
    }
    if name == captured::NAME {
        return Err(Error::new(format!("workload \"{name}\" has no tables to load"))
            .detail("it runs on a copy of the database from which it was captured"));
    }
    if let Some(script) = sysbench::find(name) {
        let options: SysbenchOptions = read(name, options)?;
        script.check(&options)?;
        return Ok(sysbench::data_set(&options, seed));
    }
    if let Some(scan) = scan::find(name) {
        let options: SysbenchOptions = read(name, options)?;
        scan.check(&options)?;
        return Ok(sysbench::data_set(&options, seed));
    }
    if name == query::NAME {
        let options: QueryOptions = read(name, options)?;
        options.check()?;
        return Ok(options.data_set(seed));
    }
    let script = pgbench::find(name).ok_or_else(|| unknown(name))?;
    let options: PgbenchOptions = read(name, options)?;
    script.check(&options)?;
    Ok(pgbench::data_set(&options))
}

/// SQLSTATEs after which the same transaction is retried.
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
    Error::new(format!("unknown workload \"{name}\"")).hint(format!("known: {}", names().join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_name_has_clients_and_tables() {
        for name in
            names().iter().filter(|name| !name.starts_with(INSERT_BENCHMARK) && *name != captured::NAME)
        {
            assert_eq!(two_clients(name, &json!({})).unwrap()[0].clients.len(), 2, "{name}");
            assert!(!tables(name, &json!({}), 1).unwrap().is_empty(), "{name}");
        }
    }

    fn two_clients(name: &str, options: &Value) -> Result<Vec<Role>> {
        roles(&Request { name, options, clients: 2, seed: 1 }, Pace::Closed)
    }

    #[test]
    fn every_step_of_the_insert_benchmark_has_its_roles_and_hooks() {
        let options = json!({"rows": {"i0": 1000, "i1": 100, "i2": 10}, "step_seconds": 1});
        let mut roles_and_hooks = Vec::new();
        for name in names().iter().filter(|name| name.starts_with(INSERT_BENCHMARK)) {
            let request = Request { name, options: &options, clients: 2, seed: 1 };
            let hooks = hooks(&request, 180_000).unwrap();
            let roles = two_clients(name, &options).unwrap().len();
            roles_and_hooks.push((roles, hooks.before.len(), hooks.after.len()));
        }
        // l.i0 creates two tables with three statements each; l.x has one stage of index builds; the clean-up
        // has two.
        let mut expected = vec![(1, 6, 0), (1, 0, 1), (3, 0, 0), (3, 0, 0)];
        expected.extend([(4, 0, 0); 6]);
        expected.push((0, 0, 2));
        assert_eq!(roles_and_hooks, expected);
    }

    #[test]
    fn steps_end_by_themselves_unless_they_are_to_end_by_time() {
        let ends_by_itself = |name: &str, ends: &str| {
            let rows = json!({"i0": 1000, "i1": 100, "i2": 10});
            let options = json!({"rows": rows, "step_seconds": 1, "ends": ends});
            super::ends_by_itself(&Request { name, options: &options, clients: 2, seed: 1 }).unwrap()
        };
        for (name, by_count, by_time) in [
            ("insert-benchmark-l.i0", true, true),
            ("insert-benchmark-l.x", true, true),
            ("insert-benchmark-l.i1", true, false),
            ("insert-benchmark-qr100", true, false),
            ("insert-benchmark-clean-up", true, true),
            ("pgbench-select", false, false),
        ] {
            assert_eq!(
                (ends_by_itself(name, "count"), ends_by_itself(name, "time")),
                (by_count, by_time),
                "{name}"
            );
        }
    }

    #[test]
    fn an_unknown_workload_is_answered_with_those_that_are_known() {
        let error = two_clients("sysbench-raed-only", &json!({})).err().unwrap();
        assert_eq!(error.message, "unknown workload \"sysbench-raed-only\"");
        assert!(error.hint.unwrap().contains("sysbench-read-only"));
    }

    #[test]
    fn an_unknown_option_is_named() {
        let error = two_clients("pgbench-select", &json!({"scael": 1})).err().unwrap();
        assert_eq!(error.message, "cannot read the options of workload \"pgbench-select\"");
        assert!(error.detail.unwrap().contains("unknown field `scael`"));
    }
}
