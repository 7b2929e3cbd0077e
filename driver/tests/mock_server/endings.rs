//! How a run ends: because it is told to, because nobody listens any more, or because the server is silent.

use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::mock::{Login, Mock, Reaction, notices};
use crate::program::{self, Driver, driver, run};
use crate::{completing, job, merged, reacting, run_tpcb};

fn signal(name: &str, driver: &Driver) {
    let pid = driver.child.id().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

#[test]
fn a_server_that_never_answers_is_waited_for_as_long_as_the_job_permits() {
    for command in [json!({"do": "run"}), json!({"do": "turns", "order": [0, 0], "slice_s": 60.0})] {
        let mock = reacting(Reaction::Bytes(Vec::new()));
        let mut driver = Driver::serve(&merged(job(&mock), &json!({"drain_limit_s": 0.6})));
        driver.event("ready");
        driver.send(&command);
        mock.await_executions(1, 3);
        driver.send(&json!({"do": "stop"}));
        let error = driver.end().error();
        // 1 is 0.6 rounded; without the job's limit it would be 60.
        assert!((1..60).contains(&waited_s(error["message"].as_str().unwrap())), "{error}");
    }
}

/// For how long transactions were waited for that did not end.
fn waited_s(text: &str) -> u64 {
    let (_, rest) = text.split_once("transactions on mock were still running ").expect(text);
    rest.split_once(" s after its turn").expect(text).0.parse().unwrap()
}

#[test]
fn a_broken_pipe_ends_the_run_with_status_1() {
    let mock = completing();
    let target = mock.target();
    for json in [&["--json"][..], &[]] {
        let mut command =
            driver(&[&["run", "pgbench-select", &target, "-T", "20", "-i", "0.05"], json].concat());
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut String::new()).unwrap();
        drop((out, child.stderr.take()));
        assert_eq!(program::wait(&mut child).code(), Some(1));
    }
}

#[test]
fn the_end_of_the_input_ends_a_run_with_its_results() {
    let mock = completing();
    let mut driver = Driver::serve(&job(&mock));
    driver.event("ready");
    driver.send(&json!({"do": "run", "interval_s": 0.05}));
    driver.await_transactions();
    driver.close_input();
    let ended = driver.end();
    assert!(ended.role(0)["transactions"].as_u64() > Some(0));
    assert!(ended.out.ends_with("{\"event\":\"end\"}\n"), "{}", ended.out);
}

#[test]
fn a_run_that_is_to_start_later_can_be_stopped_before() {
    let mock = completing();
    for start in [u64::MAX / 2, u64::MAX] {
        let mut driver = Driver::serve(&job(&mock));
        driver.event("ready");
        driver.send(&json!({"do": "run", "start_at_ns": start}));
        driver.send(&json!({"do": "phase", "name": "waiting"}));
        driver.event("phase");
        driver.send(&json!({"do": "stop"}));
        assert_eq!(driver.end().role(0)["transactions"], 0);
    }
}

#[test]
fn a_signal_ends_a_run_with_its_results_and_its_usual_status() {
    let mock = completing();
    for (name, status) in [("TERM", 143), ("INT", 130)] {
        let mut driver = Driver::serve(&job(&mock));
        driver.event("ready");
        driver.send(&json!({"do": "run", "interval_s": 0.05}));
        driver.await_transactions();
        signal(&format!("-{name}"), &driver);
        let ended = driver.end();
        assert_eq!(ended.status, Some(status), "{}", ended.err);
        let phase = ended.events("phase").remove(0);
        assert_eq!(phase["interrupted_by"], format!("SIG{name}"));
        assert!(phase["arms"][0]["roles"][0]["transactions"].as_u64() > Some(0));
        let end = format!("{{\"event\":\"end\",\"interrupted_by\":\"SIG{name}\"}}\n");
        assert!(ended.out.ends_with(&end), "{}", ended.out);
        assert_eq!(ended.err, format!("terminated by SIG{name}: results cover the time until then\n"));
    }
}

#[test]
fn a_signal_ends_a_run_that_is_asked_for_nothing_or_takes_turns() {
    let mock = completing();
    let turns = json!({"do": "turns", "order": [0, 0], "slice_s": 60.0});
    for command in [None, Some(turns)] {
        let mut driver = Driver::serve(&job(&mock));
        driver.event("ready");
        if let Some(command) = &command {
            driver.send(command);
        }
        signal("-TERM", &driver);
        let ended = driver.end();
        assert_eq!((ended.status, ended.events("phase").len()), (Some(143), 1), "{}", ended.err);
    }
}

#[test]
fn people_are_told_that_a_run_was_not_complete() {
    let mock = completing();
    let mut command = driver(&["run", "pgbench-tpcb", &mock.target(), "-T", "60", "-i", "0.05"]);
    let mut child = command.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..2 {
        out.read_line(&mut String::new()).unwrap(); // the version and an interval
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(program::wait(&mut child).code(), Some(130));
    let rest: Vec<String> = out.lines().map_while(Result::ok).collect();
    assert!(rest.contains(&"incomplete: terminated by SIGINT".to_string()), "{rest:?}");
}

#[test]
fn transactions_that_do_not_end_hold_a_signal_up_for_a_short_time_only() {
    let mock = reacting(Reaction::Bytes(Vec::new()));
    let mut driver = Driver::serve(&job_that_drains_for_ever(&mock));
    driver.event("ready");
    driver.send(&json!({"do": "run"}));
    mock.await_executions(1, 3);
    signal("-TERM", &driver);
    let ended = driver.end();
    assert_eq!((ended.status, ended.events("phase").len()), (Some(143), 1), "{}", ended.err);
    assert!((3..10).contains(&waited_s(&ended.err)), "{}", ended.err);
}

#[test]
fn a_signal_after_the_planned_end_shortens_the_wait_for_transactions() {
    // A thread that is too late for its turn has fifty of them: the first transaction that is begun does not end.
    let turns = json!({"do": "turns", "order": vec![0; 50], "slice_s": 0.1});
    for command in [json!({"do": "run", "duration_s": 1.0, "interval_s": 1.0}), turns] {
        let mock = reacting(Reaction::Bytes(Vec::new()));
        let mut driver = Driver::serve(&job_that_drains_for_ever(&mock));
        driver.event("ready");
        driver.send(&command);
        mock.await_executions(1, 3);
        if command["do"] == "run" {
            driver.event("interval"); // of the whole turn
        } else {
            // The turn is over then, or the signal ends it: both are to be obeyed.
            std::thread::sleep(Duration::from_millis(300));
        }
        signal("-TERM", &driver);
        let ended = driver.end();
        assert_eq!((ended.status, ended.events("phase").len()), (Some(143), 1), "{}", ended.err);
        assert!((3..10).contains(&waited_s(&ended.err)), "{}", ended.err);
    }
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    let mock = reacting(Reaction::Bytes(Vec::new()));
    let mut driver = Driver::serve(&job_that_drains_for_ever(&mock));
    driver.event("ready");
    driver.send(&json!({"do": "run"}));
    mock.await_executions(1, 3);
    signal("-TERM", &driver);
    // Equal signals that wait together are one: a different one cannot be lost.
    signal("-INT", &driver);
    let ended = driver.end();
    assert!(matches!(ended.status, Some(143 | 130)), "{:?}", ended.status);
    assert!(ended.events("phase").is_empty(), "{}", ended.out);
}

fn job_that_drains_for_ever(mock: &Mock) -> Value {
    merged(job(mock), &json!({"drain_limit_s": 1000.0}))
}

#[test]
fn a_signal_before_anything_is_measured_ends_the_program_at_once() {
    let mock = Mock::with(Login::Silent, None, |_| Reaction::Complete);
    let driver = Driver::serve(&job(&mock));
    mock.await_connection();
    signal("-TERM", &driver);
    let ended = driver.end();
    assert_eq!((ended.status, ended.out.as_str()), (Some(143), ""));
}

#[test]
fn a_signal_that_its_starter_ignores_is_ignored() {
    let mock = completing();
    let program = env!("CARGO_BIN_EXE_pgdyno-driver");
    let script = "trap '' INT; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, program, "run", "pgbench-tpcb", &mock.target(), "-T1", "-i0.05", "--json"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut driver = Driver::spawn(command);
    driver.event("interval");
    signal("-INT", &driver);
    assert_eq!(driver.end().status, Some(0));
}

#[test]
fn a_server_that_never_answers_fails_a_run_without_an_end() {
    for mode in ["prepared", "pipelined"] {
        let mock = reacting(Reaction::Bytes(Vec::new()));
        let error = run_tpcb(&mock, &["-M", mode, "--answer-limit", "1"]).error();
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with("server (/"), "{error}");
        assert!(message.ends_with(") did not answer within 1 s"), "{error}");
        assert_eq!(error["detail"], "client 0 of role \"main\" is waiting");
    }
}

#[test]
fn a_socket_whose_queue_is_full_is_waited_for_as_long_as_connecting_may_take() {
    let directory = std::env::temp_dir().join(format!("pgdyno-full-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let path = directory.join(".s.PGSQL.5432");
    let listener = UnixListener::bind(&path).unwrap();
    let result = unsafe {
        // SAFETY: the descriptor is an open socket that listens.
        libc::listen(listener.as_raw_fd(), 0)
    };
    assert_eq!(result, 0);
    let _only_one = UnixStream::connect(&path).unwrap();
    let target = format!("host={} user=ann connect_timeout=1", directory.display());
    let error = run(&["run", "pgbench-select", &target, "--json"]).error();
    std::fs::remove_dir_all(&directory).unwrap();
    let message = error["message"].as_str().unwrap();
    assert!(message.ends_with(": its listen queue was full for 1 s"), "{error}");
    assert_eq!(error["hint"], "the server accepts no connections: it may hang");
}

#[test]
fn messages_without_end_are_no_answer_of_a_run() {
    let mock = reacting(Reaction::Endless(notices()));
    let error = run_tpcb(&mock, &["--answer-limit", "1"]).error();
    assert!(error["message"].as_str().unwrap().ends_with(") did not answer within 1 s"), "{error}");
}

#[test]
fn messages_without_end_are_no_answer_to_a_login() {
    let mock = Mock::with(Login::Talkative, None, |_| Reaction::Complete);
    let target = mock.target().replace("connect_timeout=60", "connect_timeout=1");
    let error = run(&["run", "pgbench-select", &target, "--json"]).error();
    assert!(error["message"].as_str().unwrap().ends_with(": the server did not answer in time"), "{error}");
}

#[test]
fn a_load_waits_for_an_answer_no_longer_than_its_limit() {
    for reaction in [Reaction::Bytes(Vec::new()), Reaction::Endless(notices())] {
        let mock = Mock::start(move |_| reaction.clone());
        let ended = run(&["load", "pgbench-select", &mock.target(), "--answer-limit", "1"]);
        assert_eq!(ended.status, Some(1));
        assert!(ended.err.contains(": the server did not answer in time"), "{}", ended.err);
    }
}

#[test]
fn a_load_refuses_a_limit_that_cannot_be() {
    for limit in ["0", "-1", "1e7", "NaN"] {
        let limit = format!("--answer-limit={limit}");
        let ended = run(&["load", "pgbench-select", "host=/nowhere", &limit]);
        assert_eq!(ended.status, Some(1));
        assert!(ended.err.contains("answer_limit_s cannot be "), "{}", ended.err);
        assert!(ended.err.contains("give a number from 0.001 to 1000000"), "{}", ended.err);
    }
}
