//! Tests of the statements. The expected texts were written by hand from the reference client.

use crate::workload::Next;

use super::super::{Mode, Options, Rows, Step};
use super::{Writers, next, next_text, options, poll, role, roles};

#[test]
fn an_insert_is_one_statement_with_a_hundred_rows_of_one_timestamp() {
    let mut role = role(Step::LI0, &options(Mode::Corrected), "insert");
    let (name, sql, parameters) = next(&mut role, 1);
    assert_eq!((name, sql.as_str(), parameters.len()), ("insert", "", 1));
    let head = "insert into pi2 (dateandtime,cashregisterid,customerid,productid,price,data) values (";
    let rows: Vec<&str> = parameters[0].strip_prefix(head).unwrap().split(",\n(").collect();
    assert_eq!(rows.len(), 100);
    assert!(rows.iter().all(|row| row.starts_with("'2026-01-01 00:00:00',") && row.ends_with("')")));
}

#[test]
fn statements_have_as_many_rows_as_are_published() {
    let expected = [100, 100, 50, 5, 50, 50, 50, 50, 50, 50];
    for (step, rows) in Step::ALL.into_iter().zip(expected) {
        let text = next_text(&mut role(step, &options(Mode::Faithful), "insert"), 0);
        assert_eq!(text.matches("('20").count(), rows, "{}", step.name());
    }
}

#[test]
fn a_delete_takes_the_oldest_rows_from_the_guess_on_and_moves_it() {
    let (mut writers, _) = Writers::of(roles(Step::LI1, &options(Mode::Faithful)));
    let maker_reads = next_text(&mut writers.maker, 1);
    assert_eq!(maker_reads, "select min(transactionid) from pi2");
    writers.resync(1, Some(101));
    assert_eq!(
        next_text(&mut writers.delete, 1),
        "delete from pi2 where transactionid in (select transactionid from pi2 \
         where transactionid >= 101 order by transactionid asc limit 50)"
    );
    writers.delete.clients[1].committed(50);
    assert!(next_text(&mut writers.delete, 1).contains(">= 151 order"));
    // A failed delete is retried at the same key.
    assert!(next_text(&mut writers.delete, 1).contains(">= 151 order"));
}

#[test]
fn a_delete_from_an_empty_table_begins_at_zero() {
    let (mut writers, _) = Writers::of(roles(Step::LI2, &options(Mode::Faithful)));
    writers.resync(0, None);
    let text = next_text(&mut writers.delete, 0);
    assert!(text.ends_with("transactionid >= 0 order by transactionid asc limit 5)"), "{text}");
}

#[test]
fn keys_beyond_two_to_the_power_of_31_are_sent_as_they_are() {
    let (mut writers, query) = Writers::of(roles(Step::Qp100, &options(Mode::Faithful)));
    writers.resync(0, Some(5_000_000_000));
    assert!(next_text(&mut writers.delete, 0).contains("transactionid >= 5000000000 "));
    let mut query = query.unwrap();
    query.clients[0].receive(0, Some(5_000_000_002));
    assert!(next(&mut query, 0).2.iter().all(|id| id == "5000000000" || id == "5000000001"));
}

#[test]
fn the_guess_is_read_again_after_1001_deletes() {
    let options = Options { rows: Rows { i0: 1, i1: 1_000_000, i2: 1 }, ..options(Mode::Faithful) };
    let (mut writers, _) = Writers::of(roles(Step::LI1, &options));
    assert_eq!(poll(&mut *writers.delete.clients[0]), Next::Blocked);
    writers.resync(0, Some(1));
    for _ in 0..1001 {
        for writer in [&mut writers.insert, &mut writers.delete] {
            assert_eq!(poll(&mut *writer.clients[0]), Next::Ready);
            writer.clients[0].committed(50);
        }
        assert_ne!(poll(&mut *writers.maker.clients[0]), Next::Finished);
    }
    assert_eq!(poll(&mut *writers.delete.clients[0]), Next::Blocked);
    writers.resync(0, Some(77_000));
    assert!(next_text(&mut writers.delete, 0).contains(">= 77000 order"));
}

#[test]
fn range_queries_have_the_published_texts_for_every_table() {
    let role = role(Step::Qr100, &options(Mode::Corrected), "query");
    let texts: Vec<(&str, &str)> =
        role.statements.iter().map(|statement| (statement.name, statement.sql.as_str())).collect();
    let expected = [
        (
            "market",
            "SELECT productid, customerid, price FROM pi1 WHERE (productid >= $1) \
             ORDER BY productid, customerid, price LIMIT 10",
        ),
        (
            "register",
            "SELECT cashregisterid, customerid, price FROM pi1 WHERE (cashregisterid > $1) \
             ORDER BY cashregisterid, customerid, price LIMIT 10",
        ),
        (
            "pdc",
            "SELECT price, dateandtime, customerid FROM pi1 WHERE (price >= $1) \
             ORDER BY price, dateandtime, customerid LIMIT 10",
        ),
        (
            "market",
            "SELECT productid, customerid, price FROM pi2 WHERE (productid >= $1) \
             ORDER BY productid, customerid, price LIMIT 10",
        ),
        (
            "register",
            "SELECT cashregisterid, customerid, price FROM pi2 WHERE (cashregisterid > $1) \
             ORDER BY cashregisterid, customerid, price LIMIT 10",
        ),
        (
            "pdc",
            "SELECT price, dateandtime, customerid FROM pi2 WHERE (price >= $1) \
             ORDER BY price, dateandtime, customerid LIMIT 10",
        ),
    ];
    assert_eq!(texts, expected);
}

#[test]
fn the_three_range_queries_are_equally_likely_and_begin_anywhere() {
    let mut role = role(Step::Qr500, &options(Mode::Corrected), "query");
    let mut drawn: [Vec<u64>; 3] = Default::default();
    for _ in 0..30_000 {
        let (name, sql, parameters) = next(&mut role, 1);
        assert!(sql.contains(" FROM pi2 "), "{sql}");
        let at = ["market", "register", "pdc"].iter().position(|expected| *expected == name).unwrap();
        drawn[at].push(parameters[0].parse().unwrap());
        role.clients[1].committed(10);
    }
    for (starts, values) in drawn.iter().zip([10_000, 1000, 500]) {
        assert!((9592..=10_408).contains(&starts.len()), "{}", starts.len()); // five standard deviations
        let bins = starts.iter().fold([0.0; 100], |mut bins, start| {
            bins[(start * 100 / values) as usize] += 1.0;
            bins
        });
        let expected = starts.len() as f64 / 100.0;
        let chi_square: f64 = bins.iter().map(|count: &f64| (count - expected).powi(2) / expected).sum();
        assert!(chi_square < 99.0 + 5.0 * 198.0f64.sqrt(), "{chi_square}");
        assert!(starts.iter().all(|start| *start < values));
    }
    assert!(drawn[1].contains(&999), "the start that finds no cash register is drawn too");
}

#[test]
fn a_point_query_asks_for_ten_keys_of_its_table() {
    let mut role = role(Step::Qp100, &options(Mode::Corrected), "query");
    let names: Vec<_> = role.statements.iter().map(|statement| statement.name).collect();
    assert_eq!(names, ["max-id", "point", "point"]);
    assert_eq!(next_text(&mut role, 1), "select max(transactionid) from pi2");
    role.clients[1].receive(0, Some(1_000_000));
    role.clients[1].committed(1);
    let (_, sql, parameters) = next(&mut role, 1);
    assert_eq!(
        sql,
        "SELECT transactionid, productid, data FROM pi2 \
         WHERE transactionid in ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)"
    );
    assert_eq!(parameters.len(), 10);
}

#[test]
fn keys_are_uniform_from_the_guess_to_below_the_largest_key() {
    let (mut writers, query) = Writers::of(roles(Step::Qp500, &options(Mode::Corrected)));
    let mut query = query.unwrap();
    writers.resync(0, Some(1000));
    query.clients[0].receive(0, Some(1100));
    let mut counts = [0.0; 100];
    for _ in 0..2000 {
        for id in next(&mut query, 0).2 {
            counts[id.parse::<usize>().unwrap() - 1000] += 1.0;
        }
    }
    let chi_square: f64 = counts.iter().map(|count: &f64| (count - 200.0).powi(2) / 200.0).sum();
    assert!(chi_square < 99.0 + 5.0 * 198.0f64.sqrt(), "{chi_square}");
}

#[test]
fn the_largest_key_is_read_again_after_a_hundred_queries() {
    let mut role = role(Step::Qp1000, &options(Mode::Corrected), "query");
    let mut names = Vec::new();
    for _ in 0..203 {
        let (name, _, _) = next(&mut role, 0);
        if name == "max-id" {
            role.clients[0].receive(0, Some(500));
        }
        assert_eq!(role.clients[0].is_counted(), name == "point");
        role.clients[0].committed(1);
        names.push(name);
    }
    let reads: Vec<usize> = (0..203).filter(|at| names[*at] == "max-id").collect();
    assert_eq!(reads, [0, 101, 202]);
}

#[test]
fn keys_of_an_empty_table_are_the_guess() {
    let mut role = role(Step::Qp100, &options(Mode::Corrected), "query");
    role.clients[0].receive(0, None);
    assert!(next(&mut role, 0).2.iter().all(|id| id == "0"));
}

#[test]
fn the_same_seed_makes_the_same_statements_and_clients_steps_and_seeds_differ() {
    let insert = |step, seed, client| {
        next_text(&mut role(step, &Options { seed, ..options(Mode::Corrected) }, "insert"), client)
    };
    let expected = insert(Step::Qr100, 1, 0);
    assert_eq!(insert(Step::Qr100, 1, 0), expected);
    for other in [insert(Step::Qr100, 1, 1), insert(Step::Qr100, 2, 0), insert(Step::Qp100, 1, 0)] {
        let values = |text: &str| text.split_once("values").unwrap().1.replace("2026-01", "");
        assert_ne!(values(&other), values(&expected));
    }
}

#[test]
fn both_modes_send_the_same_statements() {
    for name in ["insert", "query"] {
        let mut faithful = role(Step::Qr1000, &options(Mode::Faithful), name);
        let mut corrected = role(Step::Qr1000, &options(Mode::Corrected), name);
        for _ in 0..5 {
            assert_eq!(next(&mut faithful, 0), next(&mut corrected, 0));
        }
    }
}

#[test]
fn each_step_begins_a_million_seconds_after_the_one_before() {
    let first = next_text(&mut role(Step::LI0, &options(Mode::Corrected), "insert"), 0);
    let second = next_text(&mut role(Step::LX, &options(Mode::Corrected), "insert"), 0);
    assert!(first.contains("'2026-01-01 00:00:00'"), "{first}");
    assert!(second.contains("'2026-01-12 13:46:40'"), "{second}"); // by Python's datetime
}

#[test]
fn timestamps_follow_the_rate_of_the_step() {
    let mut role = role(Step::Qr100, &options(Mode::Corrected), "insert"); // two statements per second
    let mut seconds = Vec::new();
    for _ in 0..4 {
        let text = next_text(&mut role, 0);
        let start = text.find("'20").unwrap();
        seconds.push(text[start + 18..start + 20].to_owned());
        role.clients[0].committed(50);
    }
    assert_eq!(seconds, ["40", "40", "41", "41"]); // the step begins at 15:06:40 (Python's datetime)
}
