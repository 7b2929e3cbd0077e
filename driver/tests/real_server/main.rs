//! The program against a real PostgreSQL (see `server/mod.rs` for which). Skipped where there is none.

#[path = "../program/mod.rs"]
mod program;
#[path = "../server/mod.rs"]
mod server;

mod logins;
mod losses;
mod steps;
mod turns;

use std::process::Command;

use program::{Driver, run};
use serde_json::{Value, json};
use server::{Server, query};

const MODES: [&str; 4] = ["simple", "extended", "prepared", "pipelined"];
/// History, accounts, tellers and branches of pgbench agree if every transaction was done once and whole.
const BALANCES: &str = "SELECT coalesce(sum(delta), 0) || ' ' || (SELECT sum(abalance) FROM pgbench_accounts) \
    || ' ' || (SELECT sum(tbalance) FROM pgbench_tellers) || ' ' || (SELECT sum(bbalance) FROM pgbench_branches) \
    FROM pgbench_history";

/// A new database with the tables of a workload.
fn loaded(server: &Server, name: &str, workload: &str, options: &[&str]) -> String {
    let target = server.database(name);
    let ended = run(&[&["load", workload, &target], options].concat());
    assert_eq!(ended.status, Some(0), "{}", ended.err);
    target
}

fn signal(name: &str, pid: &str) {
    assert!(Command::new("kill").args([name, pid]).status().unwrap().success());
}

/// Keywords of a target as JSON.
fn keywords(target: &str) -> Value {
    target
        .split(' ')
        .map(|pair| pair.split_once('=').unwrap())
        .map(|(k, v)| (k.to_string(), json!(v)))
        .collect()
}

fn job(target: &str, workload: &str, more: &Value) -> Value {
    let arms = json!([{"name": "server", "target": keywords(target)}]);
    let mut job = json!({"arms": arms, "workload": workload, "drain_limit_s": 20.0});
    for (name, value) in more.as_object().unwrap() {
        job[name] = value.clone();
    }
    job
}

fn assert_balanced(target: &str) {
    let balances = query(target, BALANCES);
    let sums: Vec<&str> = balances.split(' ').collect();
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{balances}");
}

fn by_client(role: &Value) -> Vec<u64> {
    let clients = role["clients"].as_array().unwrap();
    clients.iter().map(|client| client["transactions"].as_u64().unwrap()).collect()
}

#[test]
fn pgbench_keeps_its_balances_and_its_counts_in_every_mode() {
    let Some(server) = Server::shared() else { return };
    let target = loaded(server, "balances", "pgbench-tpcb", &[]);
    for (at, mode) in MODES.into_iter().enumerate() {
        let arguments = ["run", "pgbench-tpcb", &target, "-M", mode, "-c3", "-j2", "-t20", "--json"];
        let role = run(&arguments).role(0);
        assert_eq!(by_client(&role), [20, 20, 20], "{mode}");
        assert_eq!(role["statements"]["insert-history"]["count"], 60, "{mode}");
        assert_eq!(query(&target, "SELECT count(*) FROM pgbench_history"), (60 * (at + 1)).to_string());
        assert_balanced(&target);
    }
}

#[test]
fn sysbench_keeps_its_rows_in_every_mode() {
    let Some(server) = Server::shared() else { return };
    let size = ["-o", "table_size=1000", "-o", "tables=2"];
    let target = loaded(server, "rows", "sysbench-read-write", &size);
    for mode in MODES {
        let arguments = ["run", "sysbench-read-write", &target, "-M", mode, "-c2", "-t20", "--json"];
        let role = run(&[&arguments[..], &size].concat()).role(0);
        assert_eq!(role["transactions"], 40, "{mode}");
        assert_eq!(role["statements"]["point-select"]["count"], 400, "{mode}");
        for table in ["sbtest1", "sbtest2"] {
            let found = query(&target, &format!("SELECT count(*) || ' ' || count(DISTINCT id) FROM {table}"));
            assert_eq!(found, "1000 1000", "{mode}");
        }
    }
}

#[test]
fn two_drivers_on_one_database_are_one_too_many() {
    let Some(server) = Server::shared() else { return };
    let target = loaded(server, "shared", "pgbench-select", &[]);
    let mut first = Driver::serve(&job(&target, "pgbench-select", &json!({})));
    first.event("ready");
    let error = run(&["run", "pgbench-select", &target, "--json"]).error();
    assert!(error["message"].as_str().unwrap().starts_with("database \"shared\" on /"), "{error}");
    assert!(error["message"].as_str().unwrap().ends_with(" is already under load"), "{error}");
    first.close_input();
    assert_eq!(first.end().status, Some(0));
    assert_eq!(run(&["run", "pgbench-select", &target, "--json", "-t1"]).role(0)["transactions"], 1);
}

#[test]
fn drivers_for_parts_of_a_load_are_on_one_database_and_nobody_else_is() {
    let Some(server) = Server::shared() else { return };
    let target = loaded(server, "parts", "pgbench-select", &[]);
    let part = job(&target, "pgbench-select", &json!({"is_part": true}));
    let [mut first, mut second] = [Driver::serve(&part), Driver::serve(&part)];
    first.event("ready");
    second.event("ready");
    let error = run(&["run", "pgbench-select", &target, "--json"]).error();
    assert!(error["message"].as_str().unwrap().ends_with(" is already under load"), "{error}");
    first.close_input();
    second.close_input();
    assert_eq!((first.end().status, second.end().status), (Some(0), Some(0)));
}

#[test]
fn tables_that_are_missing_or_of_another_schema_are_told_with_the_remedy() {
    let Some(server) = Server::shared() else { return };
    let target = server.database("missing");
    for (tables, sqlstate) in [("SELECT", "42P01"), ("CREATE TABLE pgbench_accounts (id int)", "42703")] {
        query(&target, tables);
        for mode in MODES {
            let error = run(&["run", "pgbench-select", &target, "--json", "-M", mode, "-t1"]).error();
            assert_eq!(error["sqlstate"], sqlstate, "{mode}");
            assert!(error["hint"].as_str().unwrap().contains("pgdyno-driver load"), "{error}");
        }
    }
}

#[test]
fn a_thousand_connections_of_an_open_loop_take_little_memory() {
    let Some(server) = Server::shared() else { return };
    let target = loaded(server, "thousand", "pgbench-select", &[]);
    let ended = run(&["run", "pgbench-select", &target, "--json", "-c1000", "-j2", "-R500", "-T2"]);
    let role = ended.role(0);
    let transactions = role["transactions"].as_u64().unwrap();
    // 1000 on average; the standard deviation of a Poisson process is 32. A machine that stalls has fewer.
    assert!((500..1150).contains(&transactions), "{transactions}");
    let memory = ended.events("phase")[0]["driver"]["peak_memory_bytes"].as_u64().unwrap();
    assert!(memory <= 64 << 20, "{memory}");
}
