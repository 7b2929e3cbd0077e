//! Connections that the mock closes, and a database that somebody else has taken meanwhile.

use serde_json::json;

use crate::mock::{Asked, Mock, Reaction, error, message};
use crate::program::Driver;
use crate::{by_client, job, merged, reacting, run_tpcb};

#[test]
fn a_connection_that_ends_fails_the_run_with_the_code_that_the_server_gave_or_08006() {
    let farewell = error("FATAL", "57P01");
    for (reaction, code) in [
        (Reaction::Close(Vec::new()), "08006"),
        (Reaction::Close(b"D\0\0\0\x20half a message".to_vec()), "08006"),
        (Reaction::Close(farewell.clone()), "57P01"),
        (Reaction::CloseWhenIdle(Vec::new()), "08006"),
        (Reaction::CloseWhenIdle(farewell.clone()), "57P01"),
    ] {
        let error = run_tpcb(&reacting(reaction.clone()), &[]).error();
        assert_eq!(error["sqlstate"], code, "{reaction:?}");
        assert!(error["message"].as_str().unwrap().starts_with("lost a connection to server (/"), "{error}");
    }
}

#[test]
fn a_connection_that_ends_while_nothing_is_asked_is_noticed_with_the_next_command() {
    let mock = Mock::start(|asked| match asked {
        Asked { connection: 1, number: 6, .. } => Reaction::CloseWhenIdle(error("FATAL", "57P01")),
        _ => Reaction::Complete,
    });
    let mut driver = Driver::serve(&merged(job(&mock), &json!({"think_time_s": 60.0})));
    driver.event("ready");
    driver.send(&json!({"do": "run", "duration_s": 50.0}));
    assert_eq!(driver.end().error()["sqlstate"], "57P01");
}

#[test]
fn a_commit_counts_even_if_the_server_closes_the_connection_in_the_same_breath() {
    let mock = Mock::start(|asked| match asked {
        Asked { connection: 1, number: 6, .. } => {
            let answers = [message(b'C', b"COMMIT\0"), message(b'Z', b"I"), error("FATAL", "57P01")];
            Reaction::Close(answers.concat())
        }
        _ => Reaction::Complete,
    });
    let role = run_tpcb(&mock, &["--reconnect", "10"]).role(0);
    assert_eq!((&role["transactions"], &role["errors"]), (&json!(2), &json!([])));
}

#[test]
fn a_finished_client_needs_no_connection() {
    let mock = Mock::start(|asked| match asked {
        Asked { connection: 1, number: 13, .. } => Reaction::CloseWhenIdle(error("FATAL", "57P01")),
        _ => Reaction::Complete,
    });
    let role = run_tpcb(&mock, &["-c", "2"]).role(0);
    assert_eq!(by_client(&role), [2, 2]);
}

#[test]
fn a_lost_client_that_was_asleep_works_once_after_it_has_reconnected() {
    let mock = Mock::start(|asked| match asked {
        Asked { connection: 1, number: 6, .. } => Reaction::CloseWhenIdle(Vec::new()),
        _ => Reaction::Complete,
    });
    let job = merged(job(&mock), &json!({"reconnect_s": 10.0, "think_time_s": 0.2, "count": 4}));
    let mut driver = Driver::serve(&job);
    driver.event("ready");
    driver.send(&json!({"do": "run"}));
    driver.event("run-ended");
    driver.close_input();
    let role = driver.end().role(0);
    assert_eq!((&role["transactions"], &role["reconnects"]), (&json!(4), &json!(1)));
    assert_eq!(mock.tags(2), "PPPPPPPS".to_string() + &"BDES".repeat(7 * 3));
}

/// Closes the connection of the lock and one of a client.
fn restarting(is_lock_free: fn(usize) -> bool) -> Mock {
    Mock::locking(is_lock_free, |asked| match asked {
        Asked { connection: 0, .. } => Reaction::Close(Vec::new()),
        Asked { connection: 1, number: 6, .. } => Reaction::CloseWhenIdle(Vec::new()),
        _ => Reaction::Complete,
    })
}

#[test]
fn the_lock_on_the_database_is_taken_again_with_the_connections() {
    let mock = restarting(|_| true);
    let role = run_tpcb(&mock, &["--reconnect", "10"]).role(0);
    assert_eq!((&role["transactions"], &role["reconnects"]), (&json!(2), &json!(1)));
    assert_eq!([mock.tags(0), mock.tags(2)], ["QQ", "Q"], "the lock: taken, missed, and taken again");
}

#[test]
fn a_database_that_somebody_else_has_taken_meanwhile_is_left_to_them() {
    let mock = restarting(|connection| connection == 0);
    let error = run_tpcb(&mock, &["--reconnect", "10"]).error();
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("database \"shop\" on /"), "{error}");
    assert!(message.ends_with(" is already under load"), "{error}");
}
