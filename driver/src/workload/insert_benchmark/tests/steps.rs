//! Tests of roles, their pace, and their ends.

use crate::workload::{Arrivals, Next, Pace, Transaction};

use super::super::{Ends, Mode, Options, Step, step};
use super::{options, poll, roles};

#[test]
fn a_faithful_step_has_the_connections_of_the_reference_and_a_corrected_one_no_idle_ones() {
    let names =
        |step, mode| -> Vec<&str> { roles(step, &options(mode)).iter().map(|role| role.name).collect() };
    for step in Step::ALL {
        let faithful: &[&str] = match step {
            Step::LI0 | Step::LX => &["insert", "maker"],
            Step::LI1 | Step::LI2 => &["insert", "delete", "maker"],
            _ => &["insert", "delete", "maker", "query"],
        };
        assert_eq!(names(step, Mode::Faithful), faithful, "{}", step.name());
    }
    assert_eq!(names(Step::LI0, Mode::Corrected), ["insert"]);
    assert_eq!(names(Step::Qr100, Mode::Corrected), ["insert", "delete", "maker", "query"]);
    let roles = roles(Step::Qr100, &options(Mode::Faithful));
    assert!(roles.iter().all(|role| role.clients.len() == 2));
}

#[test]
fn writers_are_paced_by_bursts_or_by_an_open_loop_and_queries_by_nothing() {
    let paces =
        |step, mode| -> Vec<Pace> { roles(step, &options(mode)).iter().map(|role| role.pace).collect() };
    for (step, per_second) in [(Step::Qr100, 2), (Step::Qp500, 10), (Step::Qr1000, 20)] {
        let burst = Pace::Burst { burst: per_second };
        assert_eq!(paces(step, Mode::Faithful), [burst, burst, Pace::Closed, Pace::Closed]);
        let open = Pace::Open { rate: f64::from(per_second), arrivals: Arrivals::Uniform };
        assert_eq!(paces(step, Mode::Corrected), [open, open, Pace::Closed, Pace::Closed]);
    }
    assert_eq!(paces(Step::LI1, Mode::Faithful), [Pace::Closed; 3]);
    assert_eq!(paces(Step::LI2, Mode::Corrected), [Pace::Closed; 3]);
}

#[test]
fn without_deletes_no_client_waits_and_no_key_is_read() {
    let options = Options { deletes: false, ..options(Mode::Corrected) };
    let mut roles = roles(Step::LI1, &options);
    assert_eq!(roles.len(), 1);
    for _ in 0..9 {
        assert_eq!(poll(&mut *roles[0].clients[0]), Next::Ready);
        roles[0].clients[0].committed(50);
    }
    assert_eq!(poll(&mut *roles[0].clients[0]), Next::Finished);
}

/// Runs all clients until each has finished; returns the number of committed statements of each, by role.
fn run_to_the_end(step: Step, options: &Options) -> Vec<(&'static str, Vec<u64>)> {
    let mut roles = roles(step, options);
    let mut committed: Vec<Vec<u64>> = roles.iter().map(|role| vec![0; role.clients.len()]).collect();
    let mut is_over = false;
    while !is_over {
        is_over = true;
        for (role, counts) in roles.iter_mut().zip(&mut committed) {
            for (client, count) in role.clients.iter_mut().zip(counts) {
                let mut transaction = Transaction::default();
                let next = client.next(&mut transaction);
                if next == Next::Ready {
                    if transaction.calls()[0].wants_value {
                        client.receive(0, Some(1));
                    }
                    client.committed(1);
                    *count += 1;
                }
                is_over &= next == Next::Finished;
            }
        }
    }
    roles.iter().map(|role| role.name).zip(committed).collect()
}

#[test]
fn steps_end_after_their_rows_in_both_modes() {
    // Rows over rows per commit, rounded up; three seconds times the rate for the last.
    let expected = [(Step::LI0, 10), (Step::LX, 1), (Step::LI1, 9), (Step::LI2, 3), (Step::Qr500, 30)];
    for (step, statements) in expected {
        for mode in [Mode::Faithful, Mode::Corrected] {
            let options = options(mode);
            for (role, counts) in run_to_the_end(step, &options) {
                if role == "insert" || role == "delete" {
                    assert_eq!(counts, [statements; 2], "{} {mode:?} {role}", step.name());
                }
            }
        }
    }
}

#[test]
fn queries_end_with_the_inserts_of_their_table_at_a_multiple_of_sixteen_if_faithful() {
    let queries = |mode| run_to_the_end(Step::Qr1000, &options(mode)).pop().unwrap();
    // 60 inserts; a query follows each of them, in the test's order of turns.
    assert_eq!(queries(Mode::Corrected), ("query", vec![59; 2]));
    assert_eq!(queries(Mode::Faithful), ("query", vec![64; 2]));
}

#[test]
fn a_step_that_ends_by_time_goes_on_but_the_load_does_not() {
    let options = Options { ends: Ends::Time, deletes: false, ..options(Mode::Corrected) };
    // Without the option they would end after 1000, 100, 420 and 3000 rows.
    let ends = [(Step::LI0, Some(10)), (Step::LX, Some(1)), (Step::LI1, None), (Step::Qp1000, None)];
    for (step, expected) in ends {
        let mut roles = roles(step, &options);
        let inserter = &mut roles[0].clients[0];
        let end = (0..100).find(|_| {
            let is_over = poll(&mut **inserter) == Next::Finished;
            inserter.committed(1);
            is_over
        });
        assert_eq!(end, expected, "{}", step.name());
    }
}

#[test]
fn refused_options_make_no_clients() {
    let refused = Options { clients: 0, ..options(Mode::Corrected) };
    let message = step::roles(Step::LI0, &refused).err().unwrap().message;
    assert_eq!(message, "option \"clients\" of the Insert Benchmark cannot be 0");
}
