//! When transactions start, and on which arm.

use serde_json::{Value, json};

use crate::program::{Driver, run};
use crate::server::{Server, query};
use crate::{assert_balanced, by_client, job, keywords, loaded};

#[test]
fn latencies_of_an_impossible_rate_count_from_the_intended_start() {
    let Some(server) = Server::shared() else { return };
    let target = loaded(server, "impossible", "pgbench-select", &[]);
    let role = run(&["run", "pgbench-select", &target, "--json", "-R1000000", "-T1", "-c2"]).role(0);
    let microseconds = |of: &str, what: &str| role[of][what].as_f64().unwrap();
    // What was started last was due in the same proportion of the second as there are transactions, and the
    // second was over then: half of the difference leaves room for a machine that stalls.
    let share = role["transactions"].as_f64().unwrap() / 1e6;
    assert!(share < 0.9, "this machine is too fast for this test: {role}");
    let lag = microseconds("lag_us", "max");
    assert!((0.5 * (1.0 - share) * 1e6..1.01e6).contains(&lag), "{lag} {share}");
    assert!(microseconds("latency_us", "max") >= lag);
    assert!(microseconds("latency_us", "p50") >= microseconds("lag_us", "p50"));
}

#[test]
fn arms_take_turns_in_the_given_order_and_nobody_works_in_anothers_turn() {
    let Some(server) = Server::shared() else { return };
    let targets = ["first", "second"].map(|name| loaded(server, name, "pgbench-tpcb", &[]));
    let arms: Vec<Value> = targets
        .iter()
        .zip(["first", "second"])
        .map(|(target, name)| {
            json!({"name": name, "target": keywords(target),
                   "log_prefix": server.directory.join(format!("log-{name}"))})
        })
        .collect();
    let job = json!({"arms": arms, "workload": "pgbench-tpcb", "clients": 2, "threads": 2, "seed": 5});
    let order = [0, 1, 1, 0, 1, 0, 0, 1];
    let mut driver = Driver::serve(&job);
    driver.event("ready");
    driver.send(&json!({"do": "turns", "order": order, "slice_s": 0.1, "head_s": 0.02, "delay_s": 0.03}));
    driver.event("turns-ended");
    driver.close_input();
    let ended = driver.end();
    let slices = ended.events("slice");
    for pair in slices.windows(2) {
        let [drained, start] =
            [(0, "drained_ns"), (1, "start_ns")].map(|(at, name)| pair[at][name].as_u64().unwrap());
        assert!(start - drained >= 30_000_000, "{pair:?}");
    }
    let given: Vec<u64> = slices.iter().map(|slice| slice["arm"].as_u64().unwrap()).collect();
    assert_eq!(given, order);
    for (arm, target) in targets.iter().enumerate() {
        assert_balanced(target);
        let times = logged(&server.directory, ["first", "second"][arm]);
        assert_eq!(times.len() as u64, ended.role(arm)["transactions"].as_u64().unwrap());
        // Logs have microseconds.
        let instant = |slice: &Value, name: &str| slice[name].as_u64().unwrap() / 1000;
        let mut in_own_turns = 0;
        for slice in &slices {
            let turn = instant(slice, "start_ns")..=instant(slice, "drained_ns");
            let within = times.iter().filter(|at| turn.contains(at)).count();
            in_own_turns += if slice["arm"] == arm { within } else { 0 };
            assert!(slice["arm"] == arm || within == 0, "arm {arm}: {within} transactions within {slice}");
        }
        assert_eq!(in_own_turns, times.len());
        assert!(in_own_turns > 0);
    }
}

#[test]
fn equal_seeds_give_every_arm_the_same_parameters_and_other_seeds_give_others() {
    let Some(server) = Server::shared() else { return };
    let targets = ["seeded_a", "seeded_b"].map(|name| loaded(server, name, "pgbench-tpcb", &[]));
    let histories = |seed: u64| {
        for target in &targets {
            query(target, "TRUNCATE pgbench_history");
        }
        let arms: Vec<Value> =
            targets.iter().map(|target| json!({"name": target, "target": keywords(target)})).collect();
        let load = json!({"clients": 3, "threads": 2, "count": 25, "seed": seed});
        let mut job = job(&targets[0], "pgbench-tpcb", &load);
        job["arms"] = json!(arms);
        let mut driver = Driver::serve(&job);
        driver.event("ready");
        for arm in [0, 1] {
            driver.send(&json!({"do": "run", "arm": arm}));
            driver.event("run-ended");
        }
        driver.close_input();
        let ended = driver.end();
        assert_eq!((by_client(&ended.role(0)), by_client(&ended.role(1))), (vec![25; 3], vec![25; 3]));
        targets.each_ref().map(|target| history(target))
    };
    let [left, right] = histories(5);
    assert_eq!(left, right);
    assert_ne!(left, histories(6)[0]);
}

/// The instants at which the transactions of an arm ended, in microseconds.
fn logged(directory: &std::path::Path, arm: &str) -> Vec<u64> {
    let lines = (0..2).flat_map(|thread| {
        let text = std::fs::read_to_string(directory.join(format!("log-{arm}.{thread}"))).unwrap();
        text.lines().map(String::from).collect::<Vec<_>>()
    });
    lines
        .map(|line| {
            let fields: Vec<u64> = line.split(' ').map(|field| field.parse().unwrap()).collect();
            fields[4] * 1_000_000 + fields[5]
        })
        .collect()
}

/// The parameters of all transactions, sorted.
fn history(target: &str) -> Vec<String> {
    let rows = query(
        target,
        "SELECT string_agg(format('%s %s %s %s', tid, bid, aid, delta), ',') FROM pgbench_history",
    );
    let mut rows: Vec<String> = rows.split(',').map(String::from).collect();
    rows.sort();
    rows
}
