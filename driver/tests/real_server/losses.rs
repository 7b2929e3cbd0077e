//! Connections, servers and drivers that go away.

use std::time::Duration;

use serde_json::json;

use crate::program::{Driver, run};
use crate::server::{Server, query};
use crate::{assert_balanced, by_client, job, loaded, signal};

#[test]
fn a_restart_is_survived_if_that_is_allowed_and_told_if_it_is_not() {
    let Some(server) = Server::start() else { return };
    let target = loaded(&server, "restarts", "pgbench-tpcb", &[]);
    let more = json!({"clients": 4, "threads": 2, "reconnect_s": 120.0});
    let mut driver = Driver::serve(&job(&target, "pgbench-tpcb", &more));
    driver.event("ready");
    driver.send(&json!({"do": "run", "interval_s": 0.05}));
    driver.event("interval");
    server.control(&["-m", "fast", "-w", "restart"]);
    driver.send(&json!({"do": "phase", "name": "after"}));
    driver.event("phase");
    while driver.event("interval")["roles"][0]["transactions"] == 0 {}
    let second = run(&["run", "pgbench-tpcb", &target, "--json"]).error();
    assert!(second["message"].as_str().unwrap().ends_with(" is under load already"), "{second}");
    driver.close_input();
    let ended = driver.end();
    let sum = |name: &str| -> u64 {
        let phases = ended.events("phase");
        phases.iter().map(|phase| phase["arms"][0]["roles"][0][name].as_u64().unwrap()).sum()
    };
    assert_eq!((ended.status, sum("reconnects")), (Some(0), 4), "{}", ended.err);
    // Every acknowledged commit is there; the one that a client had in flight may be, its answer lost.
    let rows: u64 = query(&target, "SELECT count(*) FROM pgbench_history").parse().unwrap();
    let acknowledged = sum("transactions");
    assert!((acknowledged..=acknowledged + 4).contains(&rows), "{rows} rows, {acknowledged} acknowledged");
    assert_balanced(&target);

    let mut driver = Driver::serve(&job(&target, "pgbench-tpcb", &json!({"clients": 2})));
    driver.event("ready");
    driver.send(&json!({"do": "run", "interval_s": 0.05}));
    driver.event("interval");
    server.control(&["-m", "fast", "-w", "stop"]);
    let error = driver.end().error();
    assert!(["57P01", "08006"].contains(&error["sqlstate"].as_str().unwrap()), "{error}");
    assert!(error["message"].as_str().unwrap().starts_with("lost a connection to server"), "{error}");
    let error = run(&["run", "pgbench-tpcb", &target, "--json"]).error();
    assert!(error["message"].as_str().unwrap().starts_with("could not connect to /"), "{error}");
}

#[test]
fn a_backend_that_is_terminated_is_replaced_and_every_client_keeps_its_count() {
    let Some(server) = Server::shared() else { return };
    let target = loaded(server, "terminated", "pgbench-tpcb", &[]);
    let more = json!({"clients": 3, "count": 100, "think_time_s": 0.02, "reconnect_s": 120.0});
    let mut driver = Driver::serve(&job(&target, "pgbench-tpcb", &more));
    driver.event("ready");
    driver.send(&json!({"do": "run", "interval_s": 0.05}));
    while driver.event("interval")["roles"][0]["transactions"] == 0 {}
    let pid = "(SELECT pid FROM pg_stat_activity WHERE datname = 'terminated' AND pid <> pg_backend_pid() \
               AND query !~ 'advisory' LIMIT 1)";
    query(&target, &format!("SELECT pg_terminate_backend({pid})"));
    driver.event("run-ended");
    driver.close_input();
    let role = driver.end().role(0);
    assert_eq!((by_client(&role), &role["reconnects"]), (vec![100; 3], &json!(1)));
    assert_eq!(query(&target, "SELECT count(*) FROM pgbench_history"), "300");
    assert_balanced(&target);
}

#[test]
fn a_driver_that_is_told_to_terminate_tells_its_results_and_leaves_no_connections() {
    let Some(server) = Server::shared() else { return };
    let target = loaded(server, "killed", "pgbench-tpcb", &[]);
    let mut driver = Driver::serve(&job(&target, "pgbench-tpcb", &json!({"clients": 3})));
    driver.event("ready");
    driver.send(&json!({"do": "run", "interval_s": 0.05}));
    driver.event("interval");
    signal("-TERM", &driver.child.id().to_string());
    let ended = driver.end();
    assert_eq!(ended.status, Some(143), "{}", ended.err);
    let phase = ended.events("phase").remove(0);
    let acknowledged = &phase["arms"][0]["roles"][0]["transactions"];
    assert_eq!(query(&target, "SELECT count(*) FROM pgbench_history"), acknowledged.to_string());
    let left = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'killed' AND pid <> pg_backend_pid()";
    let is_empty = (0..6000).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        query(&target, left) == "0"
    });
    assert!(is_empty, "connections are left");
    assert_balanced(&target);
}
