//! Connections, servers and drivers that go away.

use std::path::PathBuf;
use std::time::Duration;

use pgdyno_driver::load::Manner;
use pgdyno_driver::protocol::request::Mode;
use pgdyno_driver::session::Session;
use pgdyno_driver::workload::Statement;
use serde_json::json;

use crate::logins::OneLargeText;
use crate::program::{Driver, run};
use crate::server::{Server, connect, query};
use crate::{assert_balanced, by_client, job, loaded, signal};

#[test]
fn a_restart_is_survived_if_that_is_allowed_and_told_if_it_is_not() {
    let Some(server) = Server::start() else { return };
    let target = loaded(&server, "restarts", "pgbench-tpcb", &[]);
    let more = json!({"clients": 4, "threads": 2, "reconnect_s": 30.0});
    let mut driver = Driver::serve(&job(&target, "pgbench-tpcb", &more));
    driver.event("ready");
    driver.send(&json!({"do": "run", "interval_s": 0.05}));
    driver.event("interval");
    server.control(&["-m", "fast", "-w", "restart"]);
    let mut reconnects = 0;
    while reconnects < 4 {
        driver.send(&json!({"do": "phase", "name": "after"}));
        let phase = driver.event("phase");
        reconnects += phase["arms"][0]["roles"][0]["reconnects"].as_u64().unwrap();
        driver.await_transactions();
    }
    let second = run(&["run", "pgbench-tpcb", &target, "--json"]).error();
    assert!(second["message"].as_str().unwrap().ends_with(" is already under load"), "{second}");
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
    assert_eq!(error["sqlstate"], "57P01", "{error}");
    assert!(error["message"].as_str().unwrap().starts_with("lost a connection to server"), "{error}");
    let error = run(&["run", "pgbench-tpcb", &target, "--json"]).error();
    assert!(error["message"].as_str().unwrap().starts_with("could not connect to /"), "{error}");
}

#[test]
fn a_backend_that_is_terminated_is_replaced_and_every_client_keeps_its_count() {
    let Some(server) = Server::shared() else { return };
    let target = loaded(server, "terminated", "pgbench-tpcb", &[]);
    let more = json!({"clients": 3, "count": 30, "think_time_s": 0.02, "reconnect_s": 30.0});
    let mut driver = Driver::serve(&job(&target, "pgbench-tpcb", &more));
    driver.event("ready");
    driver.send(&json!({"do": "run", "duration_s": 0.2})); // ten transactions of each at most
    driver.event("run-ended");
    // The rest waits, and whoever waits has not committed.
    let mut blocker = connect(&target);
    blocker.execute("BEGIN; LOCK TABLE pgbench_history IN EXCLUSIVE MODE").unwrap();
    driver.send(&json!({"do": "run"}));
    let waiting =
        "SELECT pid FROM pg_stat_activity WHERE datname = 'terminated' AND wait_event_type = 'Lock' LIMIT 1";
    let is_terminated =
        (0..24_000).any(|_| query(&target, &format!("SELECT pg_terminate_backend(({waiting}))")) == "t");
    assert!(is_terminated, "nobody waits for the lock");
    blocker.execute("COMMIT").unwrap();
    driver.event("run-ended");
    driver.close_input();
    let role = driver.end().role(0);
    assert_eq!((by_client(&role), &role["reconnects"]), (vec![30, 30, 30], &json!(1)));
    assert_eq!(query(&target, "SELECT count(*) FROM pgbench_history"), "90");
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
    let is_empty = (0..300).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        query(&target, left) == "0"
    });
    assert!(is_empty, "connections are left");
    assert_balanced(&target);
}

#[test]
fn what_a_server_has_said_last_is_read_though_nothing_can_be_written_any_more() {
    let Some(server) = Server::shared() else { return };
    let postgres = server.target("postgres");
    let tls = server.has_tls.then(|| server.tcp("user=postgres sslmode=require"));
    for target in [Some(postgres.clone()), tls].into_iter().flatten() {
        let connection = connect(&target);
        let backend = connection.backend_pid;
        let transport = connection.into_transport().unwrap();
        let mut session = Session::new((0, 0, 0), Box::new(OneLargeText), transport).unwrap();
        query(&postgres, &format!("SELECT pg_terminate_backend({backend})"));
        while PathBuf::from(format!("/proc/{backend}")).exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let statements = [Statement::unprepared("text")];
        let manner = Manner { statements: &statements, mode: Mode::Simple, retried: &[] };
        let mut sent = session.begin(manner, 0).map(|_| ());
        while sent.is_ok() {
            sent = session.flush();
        }
        assert_eq!(session.take_farewell().map(|error| error.code).as_deref(), Some("57P01"), "{target}");
    }
}
