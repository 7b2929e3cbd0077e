//! Tests of the scripts and tables, against recordings of pgbench 18 on a server.

use super::*;
use crate::workload::data_set::Table;
use crate::workload::recorded::{Recorded, masked, next_transaction, recorded};

const RECORDING: &str = include_str!("../../../tests/fixtures/pgbench-18-statements.json");

fn role(name: &str, scale: i64, seed: u64) -> Role {
    find(name).unwrap().roles(&PgbenchOptions { scale, schemas: 0 }, 2, seed, Pace::Closed).remove(0)
}

fn numbers(statement: &Recorded) -> Vec<i64> {
    statement.parameters.iter().map(|parameter| parameter.parse().unwrap()).collect()
}

#[test]
fn every_script_sends_what_pgbench_sends() {
    for script in SCRIPTS.iter().filter(|script| script.name != AGGREGATE) {
        let ours = next_transaction(&mut role(script.name, 2, 1), 0);
        assert_eq!(masked(&ours), recorded(RECORDING, script.name), "{}", script.name);
    }
}

#[test]
fn one_transaction_moves_one_amount_between_the_same_rows() {
    let mut role = role("pgbench-tpcb", 3, 1);
    for _ in 0..1000 {
        let transaction = next_transaction(&mut role, 0);
        let history = numbers(&transaction[5]);
        let [teller, branch, account, delta] = history[..] else { panic!("{history:?}") };
        assert!((1..=30).contains(&teller) && (1..=3).contains(&branch), "{history:?}");
        assert!((1..=300_000).contains(&account) && (-5000..=5000).contains(&delta), "{history:?}");
        assert_eq!(numbers(&transaction[1]), [delta, account]);
        assert_eq!(numbers(&transaction[2]), [account]);
        assert_eq!(numbers(&transaction[3]), [delta, teller]);
        assert_eq!(numbers(&transaction[4]), [delta, branch]);
    }
}

#[test]
fn a_sum_begins_where_a_thousand_accounts_follow() {
    let mut role = role(AGGREGATE, 1, 1);
    let first: Vec<i64> = (0..20_000).map(|_| numbers(&next_transaction(&mut role, 0)[0])[0]).collect();
    assert_eq!(next_transaction(&mut role, 0).len(), 1);
    assert!(first.iter().all(|number| (1..=99_001).contains(number)));
    assert!(first.iter().any(|number| *number < 100) && first.iter().any(|number| *number > 98_900));
}

#[test]
fn each_schema_has_all_tables_and_the_first_makes_it() {
    let tables = data_set(&PgbenchOptions { scale: 3, schemas: 2 });
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names[..2], ["client_1.pgbench_history", "client_1.pgbench_tellers"]);
    assert_eq!(names[4..6], ["client_2.pgbench_history", "client_2.pgbench_tellers"]);
    let accounts = &tables[6];
    assert_eq!((names.len(), accounts.rows), (8, 300_000));
    assert_eq!(tables[4].create[0], "create schema if not exists client_2");
    assert_eq!(accounts.create[0], "drop table if exists client_2.pgbench_accounts");
    assert_eq!(accounts.copy, "copy client_2.pgbench_accounts from stdin with (freeze on)");
    assert_eq!(accounts.after[1], "alter table client_2.pgbench_accounts add primary key (aid)");
}

#[test]
fn the_same_seed_gives_the_same_stream_and_another_seed_or_client_another() {
    let stream = |seed, client| -> Vec<Vec<Recorded>> {
        let mut role = role("pgbench-simple-update", 10, seed);
        (0..10).map(|_| next_transaction(&mut role, client)).collect()
    };
    assert_eq!(stream(1, 0), stream(1, 0));
    assert_ne!(stream(1, 0), stream(2, 0));
    assert_ne!(stream(1, 0), stream(1, 1));
}

#[test]
fn rows_are_those_of_initialize() {
    // From psql's COPY … TO STDOUT after `pgbench --initialize --scale=2`.
    let tables = data_set(&PgbenchOptions { scale: 2, schemas: 0 });
    let table = |name: &str| tables.iter().find(|table| table.name == name).unwrap();
    let rows = |table: &Table, range| {
        let mut rows = Vec::new();
        table.write_rows(range, &mut rows);
        String::from_utf8(rows).unwrap()
    };
    assert_eq!(rows(table("pgbench_branches"), 0..2), "1\t0\t\\N\n2\t0\t\\N\n");
    assert_eq!(rows(table("pgbench_tellers"), 9..11), "10\t1\t0\t\\N\n11\t2\t0\t\\N\n");
    assert_eq!(rows(table("pgbench_accounts"), 99_999..100_001), "100000\t1\t0\t\n100001\t2\t0\t\n");
    let counts: Vec<u64> = tables.iter().map(|table| table.rows).collect();
    assert_eq!(counts, [0, 20, 200_000, 2]);
}

#[test]
fn account_numbers_are_bigint_from_the_scale_on_where_pgbench_declares_them_so() {
    let column = |scale| data_set(&PgbenchOptions { scale, schemas: 0 })[2].create[1].clone();
    assert!(column(19_999).contains("(aid int not null,"));
    assert!(column(20_000).contains("(aid bigint not null,"));
}
