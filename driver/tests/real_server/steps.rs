//! Steps of the Insert Benchmark that cannot go on.

use std::time::Duration;

use serde_json::{Value, json};

use crate::program::{Driver, run};
use crate::server::{Server, connect, query};
use crate::{job, signal};

const ROWS: &str = r#"rows={"i0": 1000, "i1": 50, "i2": 5}"#;

fn run_step(step: &str, target: &str) -> Value {
    let workload = format!("insert-benchmark-{step}");
    run(&["run", &workload, target, "--json", "-o", ROWS, "-o", "step_seconds=1"]).error()
}

#[test]
fn a_step_whose_tables_are_missing_or_of_another_schema_names_the_step_that_makes_them() {
    let Some(server) = Server::shared() else { return };
    let target = server.database("steps_missing");
    for (tables, sqlstate) in
        [("SELECT", "42P01"), ("CREATE TABLE pi1 (transactionid bigint, price int)", "42703")]
    {
        query(&target, tables);
        for step in ["l.i1", "qr100"] {
            let error = run_step(step, &target);
            assert_eq!(error["sqlstate"], sqlstate, "{step}: {error}");
            let hint = "load the workload's tables first: pgdyno-driver load WORKLOAD TARGET; the Insert \
                        Benchmark's first step, insert-benchmark-l.i0, creates its own";
            assert_eq!(error["hint"], hint, "{step}");
        }
    }
}

#[test]
fn errors_beyond_the_limit_end_a_step_with_their_sqlstate() {
    let Some(server) = Server::shared() else { return };
    let target = server.database("steps_failing");
    run(&["run", "insert-benchmark-l.i0", &target, "-o", ROWS, "-o", "step_seconds=1"]);
    query(&target, "ALTER TABLE pi1 ADD CHECK (transactionid < 0) NOT VALID");
    let workload = ["run", "insert-benchmark-l.i1", &target, "--json", "-o", ROWS, "-o", "step_seconds=1"];
    let error = run(&[&workload[..], &["--max-errors", "3"]].concat()).error();
    assert_eq!(error["sqlstate"], "23514");
    assert!(error["detail"].as_str().unwrap().ends_with("more than 3 transactions were given up"), "{error}");
}

#[test]
fn whoever_asks_for_an_end_does_not_wait_for_an_index_build_and_leaves_none_behind() {
    let Some(server) = Server::shared() else { return };
    let target = server.database("steps_ended");
    run(&["run", "insert-benchmark-l.i0", &target, "-o", ROWS, "-o", "step_seconds=1"]);
    let options = json!({"rows": {"i0": 1000, "i1": 50, "i2": 5}, "step_seconds": 1});
    for by_signal in [true, false] {
        // An index build waits for those who write.
        let mut writer = connect(&target);
        writer.execute("BEGIN; LOCK TABLE pi1 IN ROW EXCLUSIVE MODE").unwrap();
        let mut driver = Driver::serve(&job(&target, "insert-benchmark-l.x", &json!({"options": options})));
        driver.event("ready");
        driver.send(&json!({"do": "run"}));
        await_builds(&target, "1");
        if by_signal {
            signal("-TERM", &driver.child.id().to_string());
        } else {
            driver.close_input();
        }
        let ended = driver.end();
        let expected = "the run was stopped before its post-run statements were complete";
        assert_eq!(ended.status, Some(if by_signal { 143 } else { 1 }), "{}", ended.err);
        assert!(ended.err.contains(expected), "{}", ended.err);
        await_builds(&target, "0");
    }
}

/// Waits until so many index builds are under way.
fn await_builds(target: &str, expected: &str) {
    let builds =
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'create index%' AND state = 'active'";
    let is_reached = (0..6000).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        query(target, builds) == expected
    });
    assert!(is_reached, "not {expected} index builds");
}
