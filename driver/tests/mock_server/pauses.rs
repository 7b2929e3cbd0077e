//! Clients that pause between transactions, as sessions of a captured workload do.

use serde_json::{Value, json};

use crate::program::Driver;
use crate::{by_client, completing, job, merged};

/// Runs a job with these pauses, and returns its role's results.
fn paused(think_times_s: &Value, run: &Value, more: &Value) -> Value {
    let mock = completing();
    let job = merged(merged(job(&mock), more), &json!({"think_times_s": think_times_s}));
    let mut driver = Driver::serve(&job);
    driver.event("ready");
    driver.send(&merged(json!({"do": "run"}), run));
    driver.event("run-ended");
    driver.close_input();
    driver.end().role(0)
}

#[test]
fn a_run_begins_within_pauses() {
    let role = paused(&json!([3600.0]), &json!({"duration_s": 0.2}), &json!({"clients": 3}));
    assert_eq!(by_client(&role), [0, 0, 0]);
}

#[test]
fn a_client_that_has_paused_does_its_next_transaction() {
    let role = paused(&json!([0.0, 0.02]), &json!({}), &json!({"clients": 2, "threads": 2, "count": 5}));
    assert_eq!(by_client(&role), [5, 5]);
}

#[test]
fn no_client_does_more_than_its_pauses_let_it() {
    let role = paused(&json!([0.4, 0.5]), &json!({"duration_s": 1.0}), &json!({"clients": 2}));
    // Even one that begins at once, and whose transactions take no time: at 0, 0.4 and 0.8.
    assert!(by_client(&role).iter().all(|transactions| *transactions <= 3), "{role}");
}

#[test]
fn pauses_and_a_rate_exclude_each_other() {
    let job = merged(job(&completing()), &json!({"think_times_s": [0.1], "rate": 10.0}));
    let error = Driver::serve(&job).end().error();
    assert_eq!(error["message"], "think_times_s and rate are mutually exclusive");
    assert_eq!(error["hint"], "omit one of them");
}
