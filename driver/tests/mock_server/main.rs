//! The program against a server that answers as no PostgreSQL should, and as a real one seldom does.

#[path = "../mock/mod.rs"]
mod mock;
#[path = "../program/mod.rs"]
mod program;

mod endings;
mod farewells;
mod losses;
mod pauses;

use std::sync::{Arc, Mutex};
use std::time::Instant;

use mock::{Asked, Login, Mock, Reaction, error, message};
use program::{Driver, Ended, run};
use serde_json::{Value, json};

/// Runs `pgbench-tpcb`, seven statements, on one connection.
fn run_tpcb(mock: &Mock, more: &[&str]) -> Ended {
    run(&[&["run", "pgbench-tpcb", &mock.target(), "--json", "-t", "2"], more].concat())
}

fn job(mock: &Mock) -> Value {
    json!({"arms": [{"name": "mock", "target": mock.keywords()}], "workload": "pgbench-tpcb"})
}

/// Answers the third statement of connection 1 like this, and completes all others.
fn reacting(reaction: Reaction) -> Mock {
    Mock::start(move |asked| match asked {
        Asked { connection: 1, number: 2, .. } => reaction.clone(),
        _ => Reaction::Complete,
    })
}

fn completing() -> Mock {
    Mock::start(|_| Reaction::Complete)
}

#[test]
fn every_mode_sends_the_messages_of_its_mode_and_no_others() {
    for (mode, prepared, transaction) in [
        ("simple", "", "Q".repeat(7)),
        ("extended", "", "PBDES".repeat(7)),
        ("prepared", "PPPPPPPS", "BDES".repeat(7)),
        ("pipelined", "PPPPPPPS", "BDE".repeat(7) + "S"),
    ] {
        let mock = completing();
        let role = run_tpcb(&mock, &["-M", mode]).role(0);
        assert_eq!(role["transactions"], 2, "{mode}");
        assert_eq!(mock.tags(1), prepared.to_string() + &transaction + &transaction, "{mode}");
    }
}

#[test]
fn a_connection_prepares_what_its_client_uses_and_nothing_of_other_tables() {
    for (workload, per_client) in [("insert-benchmark-qr100", 3), ("insert-benchmark-qp100", 1)] {
        let mock = completing();
        let options = r#"rows={"i0": 100, "i1": 100, "i2": 100}"#;
        let more = ["-o", options, "-o", "step_seconds=1", "-o", "ends=time", "-T", "0.2", "-c", "3"];
        let ended = run(&[&["run", workload, &mock.target(), "--json"][..], &more].concat());
        assert_eq!(ended.status, Some(0), "{}", ended.err);
        let prepared: Vec<usize> =
            (0..mock.connections()).map(|number| mock.tags(number).matches('P').count()).collect();
        let some: Vec<usize> = prepared.into_iter().filter(|prepared| *prepared > 0).collect();
        assert_eq!(some, [per_client; 3], "{workload}");
    }
}

#[test]
fn to_read_the_largest_key_is_a_statement_but_no_transaction() {
    let mock = completing();
    let rows = json!({"i0": 100, "i1": 100, "i2": 100});
    let options = json!({"rows": rows, "step_seconds": 1, "ends": "time"});
    let more = json!({"workload": "insert-benchmark-qp100", "options": options});
    let mut driver = Driver::serve(&merged(job(&mock), &more));
    driver.event("ready");
    driver.send(&json!({"do": "run", "interval_s": 0.05}));
    while driver.event("interval")["roles"][3]["transactions"] == 0 {}
    driver.close_input();
    let ended = driver.end();
    let query = &ended.events("phase")[0]["arms"][0]["roles"][3];
    assert_eq!(query["name"], "query");
    let count = |name: &str| query["statements"][name]["count"].as_u64().unwrap();
    // It is read before the first query, and after every hundred.
    assert!((1..=count("point") / 100 + 1).contains(&count("max-id")), "{query}");
    assert_eq!(by_client(query), [count("point")]);
    assert_eq!(query["transactions"], count("point"));
}

#[test]
fn every_known_login_succeeds_with_the_password_and_only_with_it() {
    for login in [Login::Cleartext, Login::Md5, Login::Scram] {
        let mock = Mock::with(login, None, |_| Reaction::Complete);
        for (password, status) in [("pencil", Some(0)), ("pen", Some(1))] {
            let target = format!("{} password={password}", mock.target());
            let ended = run(&["run", "pgbench-select", &target, "--json", "-t", "1"]);
            assert_eq!(ended.status, status, "{login:?} {password}: {}", ended.err);
            if status == Some(1) {
                assert_eq!(ended.error()["sqlstate"], "28P01", "{login:?}");
            }
        }
        let error = run(&["run", "pgbench-select", &mock.target(), "--json"]).error();
        assert_eq!(error["message"], "the server requires a password for role \"ann\"");
    }
}

#[test]
fn a_login_that_is_not_known_refused_or_not_proven_is_an_error() {
    for (login, expected) in [
        (Login::Gss, "the server requested an unsupported authentication method"),
        (Login::ForgedScram, "the server did not prove that it knows the password"),
        (Login::UnfinishedScram, "the server did not prove that it knows the password"),
        (Login::SkippedScram, "the server did not prove that it knows the password"),
        (Login::Oversized, "the server sent a message with invalid length 2147483647"),
        (Login::Refuse, "could not log in as \"ann\" to \"shop\": the mock says 28P01"),
    ] {
        let mock = Mock::with(login, None, |_| Reaction::Complete);
        let target = mock.target() + " password=pencil";
        let error = run(&["run", "pgbench-select", &target, "--json"]).error();
        assert_eq!(error["message"], expected, "{login:?}");
    }
}

#[test]
fn a_missing_table_is_answered_with_how_to_load_it_in_every_mode() {
    let at_parse = Mock::with(Login::Trust, Some("42P01"), |_| Reaction::Complete);
    let at_execution = reacting(Reaction::Fail("42P01"));
    for (mock, mode, doing) in
        [(&at_parse, "prepared", "prepare update-account"), (&at_execution, "simple", "run select-account")]
    {
        let error = run_tpcb(mock, &["-M", mode]).error();
        assert_eq!(error["sqlstate"], "42P01");
        assert_eq!(error["message"], format!("could not {doing}: the mock says 42P01"));
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.starts_with("load the workload's tables first: pgdyno-driver load WORKLOAD TARGET"));
    }
}

#[test]
fn a_server_that_breaks_the_protocol_fails_the_run_with_what_it_sent() {
    let cases: [(&[u8], &str); 6] = [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the server sent a message with invalid length 1414811695"),
        (b"D\x7f\xff\xff\xff", "the server sent a message with invalid length 2147483647"),
        (b"C\0\0\0\x03", "the server sent a message with invalid length 3"),
        (b"G\0\0\0\x07\0\0\0", "unexpected message type \"G\" from the server"),
        (b"H\0\0\0\x07\0\0\0", "unexpected message type \"H\" from the server"),
        (b"Z\0\0\0\x05I", "the server sent ReadyForQuery before all statements were complete"),
    ];
    for (bytes, expected) in cases {
        let error = run_tpcb(&reacting(Reaction::Bytes(bytes.into())), &[]).error();
        assert_eq!(error["message"], expected);
    }
}

#[test]
fn messages_that_come_at_any_time_change_nothing() {
    let bytes = [
        message(b'N', b"SNOTICE\0C00000\0Mfine\0\0"),
        message(b'S', b"TimeZone\0UTC\0"),
        message(b'A', b"\0\0\0\x01channel\0\0"),
    ];
    let mock = Mock::start(move |_| Reaction::Prefix(bytes.concat()));
    for mode in ["simple", "extended", "prepared", "pipelined"] {
        assert_eq!(run_tpcb(&mock, &["-M", mode]).role(0)["transactions"], 2, "{mode}");
    }
}

#[test]
fn a_conflict_is_tried_again_with_the_same_parameters_and_counted() {
    for mode in ["prepared", "pipelined", "extended"] {
        let asked_for = Arc::new(Mutex::new(Vec::new()));
        let seen = asked_for.clone();
        let mock = Mock::start(move |asked| {
            let mut seen = seen.lock().unwrap();
            seen.push((asked.sql.to_string(), asked.arguments.to_vec()));
            if asked.number == 2 { Reaction::Fail("40001") } else { Reaction::Complete }
        });
        let role = run_tpcb(&mock, &["-M", mode]).role(0);
        assert_eq!((&role["transactions"], &role["retries"]), (&json!(2), &json!({"40001": 1})), "{mode}");
        let asked_for = asked_for.lock().unwrap();
        assert_eq!(asked_for.len(), 3 + 7 + 7, "{mode}");
        assert_eq!(asked_for[..3], asked_for[3..6], "{mode}");
        assert_eq!(asked_for[1].1.len(), 2, "an update of an account has two parameters");
    }
}

#[test]
fn a_conflict_without_end_is_given_up_after_ten_tries() {
    let mock = Mock::start(|_| Reaction::Fail("40P01"));
    let ended = run_tpcb(&mock, &[]);
    assert_eq!(ended.error()["sqlstate"], "40P01");
    assert_eq!(mock.tags(1), "PPPPPPPS".to_string() + &"BDESQ".repeat(10));
}

#[test]
fn errors_up_to_the_limit_are_counted_and_one_more_fails_the_run_whatever_thread_sees_it() {
    let failing_twice = |asked: &Asked| {
        if asked.connection > 0 && asked.number < 2 { Reaction::Fail("23505") } else { Reaction::Complete }
    };
    let more = ["-c", "2", "-j", "2", "--max-errors"];
    let role = run_tpcb(&Mock::start(failing_twice), &[&more[..], &["4"]].concat()).role(0);
    assert_eq!(
        (&role["errors"], by_client(&role)),
        (&json!([{"sqlstate": "23505", "statement": "begin", "count": 4}]), vec![2, 2])
    );
    let error = run_tpcb(&Mock::start(failing_twice), &[&more[..], &["3"]].concat()).error();
    assert_eq!(error["sqlstate"], "23505");
    assert_eq!(error["message"], "could not run begin: the mock says 23505");
    assert_eq!(error["detail"], "more than 3 transactions were given up");
}

#[test]
fn intervals_and_phases_count_every_transaction_once() {
    let mock = completing();
    let mut driver = Driver::serve(&job(&mock));
    driver.event("ready");
    let asked_for = Instant::now();
    driver.send(&json!({"do": "run", "interval_s": 0.05}));
    driver.await_transactions();
    let seen = Instant::now();
    for name in ["second", "third"] {
        driver.send(&json!({"do": "phase", "name": name}));
        driver.event("phase");
        driver.await_transactions();
    }
    let least = seen.elapsed().as_secs_f64();
    driver.send(&json!({"do": "stop"}));
    let ended = driver.end();
    let most = asked_for.elapsed().as_secs_f64();
    let phases = ended.events("phase");
    assert_eq!(phases.len(), 3);
    let events = ended.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told: Vec<Value> =
        events.filter(|event| event["event"] == "interval" || event["event"] == "phase").collect();
    for of_phase in told.split_inclusive(|event| event["event"] == "phase").take(2) {
        let (phase, intervals) = of_phase.split_last().unwrap();
        let transactions: u64 = intervals.iter().map(|interval| count(&interval["roles"][0])).sum();
        assert_eq!(transactions, count(&phase["arms"][0]["roles"][0]), "{phase}");
        assert!(transactions > 0);
    }
    let running: f64 = phases.iter().map(|phase| phase["arms"][0]["running_s"].as_f64().unwrap()).sum();
    assert!((least..most).contains(&running), "{least} {running} {most}");
}

#[test]
fn the_intervals_of_a_run_cover_it_to_its_end() {
    let mock = completing();
    for duration in [0.4, 0.475] {
        let mut driver = Driver::serve(&job(&mock));
        driver.event("ready");
        driver.send(&json!({"do": "run", "duration_s": duration, "interval_s": 0.05}));
        driver.event("run-ended");
        driver.close_input();
        let ended = driver.end();
        let intervals = ended.events("interval");
        let covered: f64 = intervals.iter().map(|interval| interval["length_s"].as_f64().unwrap()).sum();
        // What is left on a machine that stalls may be less than a tenth of an interval.
        assert!((-1e-6..0.005).contains(&(duration - covered)), "{covered} of {duration} s");
    }
}

fn count(result: &Value) -> u64 {
    result["transactions"].as_u64().unwrap()
}

#[test]
fn nonsense_is_refused_with_its_value() {
    let mock = completing();
    for (extra, expected) in [
        (json!({"clients": 0}), "clients cannot be 0"),
        (json!({"workload": "pgbench-slect"}), "unknown workload \"pgbench-slect\""),
        (json!({"cpus": [100_000]}), "cannot run on CPU 100000: no such CPU"),
        (json!({"arms": []}), "the job names no server"),
        (json!({"seed": "seven"}), "invalid job"),
    ] {
        assert_eq!(Driver::serve(&merged(job(&mock), &extra)).end().error()["message"], expected);
    }
    let hint = |ended: program::Ended| ended.error()["hint"].clone();
    let twice = json!({"arms": [job(&mock)["arms"][0], {"name": "again", "target": mock.keywords()}]});
    let hint = hint(Driver::serve(&merged(job(&mock), &twice)).end());
    assert_eq!(hint, "use a separate database for each arm");
    for (command, expected) in [
        (json!({"do": "dance"}), "invalid command: {\"do\":\"dance\"}"),
        (json!({"do": "run", "arm": 7}), "arm 7 does not exist"),
        (json!({"do": "run", "duration_s": -1.0}), "duration_s cannot be -1"),
        (json!({"do": "run", "interval_s": 0.0}), "interval_s cannot be 0"),
        (json!({"do": "turns", "order": [0, 1], "slice_s": 0.1}), "arm 1 does not exist"),
        (json!({"do": "turns", "order": [0], "slice_s": -1}), "slice_s cannot be -1"),
        (json!({"do": "turns", "order": [0], "slice_s": 0.1, "head_s": 0.2}), "head_s cannot be 0.2"),
        (json!({"do": "turns", "order": [0], "slice_s": 0.1, "delay_s": -1}), "delay_s cannot be -1"),
        (json!({"do": "rate", "rate": 5}), "cannot change the rate to 5"),
    ] {
        let mut driver = Driver::serve(&job(&mock));
        driver.event("ready");
        driver.send(&command);
        assert_eq!(driver.end().error()["message"], expected);
    }
}

#[test]
fn what_is_given_up_is_logged_with_its_sqlstate_and_its_statement() {
    let asked = Mutex::new(0);
    let mock = Mock::start(move |_| {
        let mut asked = asked.lock().unwrap();
        *asked += 1;
        match *asked {
            3 => Reaction::Fail("23505"),
            6 => Reaction::Close(error("FATAL", "57P01")),
            _ => Reaction::Complete,
        }
    });
    let prefix = std::env::temp_dir().join(format!("pgdyno-failures-{}", std::process::id()));
    let arms = json!([{"name": "mock", "target": mock.keywords(), "log_prefix": prefix}]);
    let more = json!({"arms": arms, "count": 1, "max_errors": 9, "reconnect_s": 10.0});
    let mut driver = Driver::serve(&merged(job(&mock), &more));
    driver.event("ready");
    driver.send(&json!({"do": "run"}));
    driver.event("run-ended");
    driver.close_input();
    assert_eq!(driver.end().status, Some(0));
    let log = format!("{}.0", prefix.display());
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(log).unwrap();
    let words: Vec<_> = text.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    let causes: Vec<_> = words[..2].iter().map(|word| word.split(':').collect::<Vec<_>>()).collect();
    assert_eq!([causes[0][1], causes[0][3]], ["23505", "select-account"], "{text}");
    assert_eq!([causes[1][1], causes[1][3]], ["57P01", ""], "{text}");
    assert!(causes.iter().all(|cause| cause[2].parse::<u64>().is_ok()), "{text}");
    assert!(words.last().unwrap().parse::<u64>().is_ok(), "{text}");
}

#[test]
fn an_impossible_rate_is_refused_in_the_middle_of_a_run_too() {
    let mock = completing();
    let mut driver = Driver::serve(&merged(job(&mock), &json!({"rate": 50.0})));
    driver.event("ready");
    driver.send(&json!({"do": "run", "interval_s": 0.05}));
    driver.event("interval");
    driver.send(&json!({"do": "rate", "rate": 0.0}));
    let error = driver.end().error();
    assert_eq!(error["message"], "cannot change the rate to 0");
    assert_eq!(error["hint"], "give a number from 0.001 to 1000000000");
}

#[test]
fn a_new_rate_holds_for_what_comes_and_not_for_what_has_been() {
    let mock = completing();
    let prefix = std::env::temp_dir().join(format!("pgdyno-rates-{}", std::process::id()));
    let arms = json!([{"name": "mock", "target": mock.keywords(), "log_prefix": prefix}]);
    let more = json!({"arms": arms, "rate": 40.0, "arrivals": "uniform", "clients": 3, "threads": 2});
    let mut driver = Driver::serve(&merged(job(&mock), &more));
    driver.event("ready");
    driver.send(&json!({"do": "run", "duration_s": 1.0}));
    driver.event("run-ended");
    driver.send(&json!({"do": "rate", "rate": 200.0}));
    driver.send(&json!({"do": "run", "interval_s": 0.05}));
    let mut done = [0; 3];
    // Of 40/s for 1 s, a client has 13 or 14: what a machine that stalls misses in the first run is due in the second.
    while done.iter().any(|done| *done < 17) {
        driver.event("interval");
        driver.send(&json!({"do": "phase", "name": "faster"}));
        let more = by_client(&driver.event("phase")["arms"][0]["roles"][0]);
        done.iter_mut().zip(more).for_each(|(done, more)| *done += more);
    }
    driver.close_input();
    assert_eq!(driver.end().status, Some(0));
    for (thread, slow, fast, expected) in [(0, 37_500, 7500, 24..=26), (1, 75_000, 15_000, 11..=13)] {
        let gaps = gaps_us(&format!("{}.{thread}", prefix.display()));
        let is = |gap: u64, expected: u64| gap.abs_diff(expected) <= 2; // the log has whole microseconds
        let last_slow = gaps.iter().rposition(|gap| is(*gap, slow)).expect("one at the first rate");
        let first_fast = gaps.iter().position(|gap| is(*gap, fast)).expect("one at the second rate");
        // One gap holds the time between the runs, and one the change: if all was done in time, that is the same.
        let others = gaps.iter().filter(|gap| !is(**gap, slow) && !is(**gap, fast)).count();
        assert!(last_slow < first_fast && others <= 2, "{gaps:?}");
        let slow = gaps.iter().filter(|gap| is(**gap, slow)).count();
        assert!(expected.contains(&slow), "{slow} {gaps:?}");
    }
}

/// The time between the instants at which the transactions of a log were to start.
fn gaps_us(log: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(log).unwrap();
    std::fs::remove_file(log).unwrap();
    let due = text.lines().map(|line| {
        let fields: Vec<u64> = line.split(' ').map(|field| field.parse().unwrap()).collect();
        fields[4] * 1_000_000 + fields[5] - fields[2]
    });
    let mut due: Vec<u64> = due.collect();
    due.sort_unstable();
    due.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn by_client(role: &Value) -> Vec<u64> {
    let clients = role["clients"].as_array().unwrap();
    clients.iter().map(|client| client["transactions"].as_u64().unwrap()).collect()
}

fn merged(mut job: Value, extra: &Value) -> Value {
    for (name, value) in extra.as_object().unwrap() {
        job[name] = value.clone();
    }
    job
}
