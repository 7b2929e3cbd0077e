//! Tests of the scripts and tables, against recordings of sysbench 1.0.20 on a server.

use std::collections::HashSet;

use super::*;
use crate::random::Distribution;
use crate::workload::Statement;
use crate::workload::recorded::{Recorded, masked, next_transaction, recorded};

const RECORDING: &str = include_str!("../../../tests/fixtures/sysbench-1.0.20-statements.json");

fn role(name: &str, options: &SysbenchOptions, clients: u64, seed: u64) -> Role {
    let script = find(name).unwrap();
    assert_eq!(script.check(options), Ok(()));
    script.roles(options, clients, seed, Pace::Closed).remove(0)
}

fn role_of_one(name: &str) -> Role {
    role(name, &SysbenchOptions { table_size: 1000, ..Default::default() }, 1, 1)
}

fn transactions(role: &mut Role, client: usize, count: usize) -> Vec<Vec<Recorded>> {
    (0..count).map(|_| next_transaction(role, client)).collect()
}

fn numbers(statement: &Recorded) -> Vec<i64> {
    statement.parameters.iter().filter_map(|parameter| parameter.parse().ok()).collect()
}

#[test]
fn every_script_sends_what_sysbench_sends() {
    for script in &SCRIPTS {
        let ours = next_transaction(&mut role_of_one(script.name), 0);
        assert_eq!(masked(&ours), recorded(RECORDING, script.name), "{}", script.name);
    }
}

#[test]
fn transactions_have_as_many_statements_as_the_literature_says() {
    // 14 reads and 2 others; 4 writes more; 4 writes and 2 others.
    for (name, statements) in [("read-only", 16), ("read-write", 20), ("write-only", 6), ("point-select", 1)]
    {
        let mut role = role_of_one(&format!("sysbench-{name}"));
        assert_eq!(next_transaction(&mut role, 0).len(), statements, "{name}");
    }
}

#[test]
fn skip_trx_leaves_out_begin_and_commit_only() {
    let options = SysbenchOptions { skip_trx: true, ..Default::default() };
    let mut role = role("sysbench-read-write", &options, 1, 1);
    let transaction = next_transaction(&mut role, 0);
    assert_eq!(transaction.len(), 18);
    assert!(role.statements.iter().all(|statement| !["BEGIN", "COMMIT"].contains(&statement.sql.as_str())));
}

#[test]
fn keys_are_within_the_table_and_reach_both_of_its_ends() {
    for distribution in [Distribution::Uniform, Distribution::Pareto, Distribution::Zipfian] {
        let options = SysbenchOptions { table_size: 10, distribution, ..Default::default() };
        let mut role = role("sysbench-point-select", &options, 1, 1);
        let keys: HashSet<i64> = transactions(&mut role, 0, 2000)
            .iter()
            .flat_map(|transaction| numbers(&transaction[0]))
            .collect();
        assert_eq!(keys, (1..=10).collect(), "{distribution:?}");
    }
}

#[test]
fn ranges_have_as_many_keys_as_the_option_says() {
    for (range_size, distance) in [(100, 99), (1, 0), (7, 6)] {
        let options = SysbenchOptions { range_size, ..Default::default() };
        let mut role = role("sysbench-read-only", &options, 1, 1);
        for statement in &next_transaction(&mut role, 0)[11..15] {
            let keys = numbers(statement);
            assert_eq!(keys[1] - keys[0], distance, "{statement:?}");
        }
    }
}

#[test]
fn the_row_that_is_deleted_is_inserted_again() {
    let mut role = role_of_one("sysbench-write-only");
    for transaction in transactions(&mut role, 0, 100) {
        assert!(transaction[3].text.starts_with("DELETE"), "{transaction:?}");
        assert_eq!(numbers(&transaction[3])[0], numbers(&transaction[4])[0]);
    }
}

#[test]
fn a_table_is_chosen_for_each_group_of_statements() {
    let options = SysbenchOptions { tables: 8, ..Default::default() };
    let mut role = role("sysbench-read-write", &options, 1, 1);
    let table = |statement: &Recorded| {
        statement.text.split("sbtest").nth(1).unwrap().split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let mut tables_of_transactions = HashSet::new();
    let mut all_tables = HashSet::new();
    for transaction in transactions(&mut role, 0, 200) {
        let tables: Vec<u64> = transaction[1..19].iter().map(table).collect();
        assert_eq!(HashSet::<&u64>::from_iter(&tables[0..10]).len(), 1, "ten point selects, one table");
        assert_eq!(tables[16], tables[17], "deleted from and inserted into the same table");
        all_tables.extend(tables.iter().copied());
        tables_of_transactions.insert(tables);
    }
    assert_eq!(all_tables, (1..=8).collect());
    assert!(tables_of_transactions.len() > 190, "groups do not share their choice");
}

#[test]
fn there_is_one_statement_per_table_and_kind_and_one_begin_and_commit() {
    let options = SysbenchOptions { tables: 3, ..Default::default() };
    let texts = |name| -> Vec<String> {
        role(name, &options, 1, 1).statements.into_iter().map(|statement: Statement| statement.sql).collect()
    };
    assert_eq!(texts("sysbench-read-write").len(), 2 + 9 * 3);
    assert_eq!(
        texts("sysbench-delete"),
        [
            "DELETE FROM sbtest1 WHERE id=$1",
            "DELETE FROM sbtest2 WHERE id=$1",
            "DELETE FROM sbtest3 WHERE id=$1"
        ]
    );
    assert_eq!(texts("sysbench-insert"), [""]);
}

#[test]
fn the_same_seed_gives_every_client_the_same_transactions_again() {
    let options = SysbenchOptions { tables: 4, ..Default::default() };
    for script in SCRIPTS.iter().filter(|script| script.check(&options).is_ok()) {
        let mut one = role(script.name, &options, 3, 7);
        let mut two = role(script.name, &options, 3, 7);
        for client in 0..3 {
            assert_eq!(transactions(&mut one, client, 20), transactions(&mut two, client, 20));
        }
    }
}

#[test]
fn other_clients_and_other_seeds_have_other_transactions() {
    let options = SysbenchOptions::default();
    let mut one = role("sysbench-read-only", &options, 2, 7);
    let mut two = role("sysbench-read-only", &options, 1, 8);
    let first = transactions(&mut one, 0, 5);
    assert_ne!(first, transactions(&mut one, 1, 5));
    assert_ne!(first, transactions(&mut two, 0, 5));
}

#[test]
fn a_client_has_the_same_transactions_however_many_others_there_are() {
    let options = SysbenchOptions::default();
    let mut alone = role("sysbench-read-write", &options, 1, 7);
    let mut among_many = role("sysbench-read-write", &options, 64, 7);
    assert_eq!(transactions(&mut alone, 0, 5), transactions(&mut among_many, 0, 5));
}

#[test]
fn segments_share_the_table_and_overlap_in_one_key() {
    // By hand, from rlen = table_size / threads and sb_rand(rlen * tid, rlen * tid + rlen), truncated to
    // integers.
    let segment = |client| client::segment(1000, Place { client, clients: 3, seed: 1 });
    assert_eq!([segment(0), segment(1), segment(2)], [(0, 333), (333, 666), (666, 1000)]);
    assert_eq!(client::segment(2, Place { client: 2, clients: 8, seed: 1 }), (0, 0));
}

#[test]
fn random_points_and_ranges_stay_within_the_segment_of_their_client() {
    let options = SysbenchOptions { table_size: 1000, ..Default::default() };
    let mut points = role("sysbench-select-random-points", &options, 4, 1);
    let mut ranges = role("sysbench-select-random-ranges", &options, 4, 1);
    for _ in 0..100 {
        let keys = numbers(&next_transaction(&mut points, 3)[0]);
        assert_eq!(keys.len(), 10);
        assert!(keys.iter().all(|key| (750..=1000).contains(key)), "{keys:?}");
        let keys = numbers(&next_transaction(&mut ranges, 1)[0]);
        assert_eq!(keys.len(), 20);
        assert!(keys.chunks(2).all(|range| (250..=500).contains(&range[0]) && range[1] == range[0] + 5));
    }
}

#[test]
fn scripts_that_read_the_first_table_only_refuse_several() {
    let options = SysbenchOptions { tables: 2, ..Default::default() };
    for script in &SCRIPTS {
        assert_eq!(script.check(&options).is_err(), script.name.contains("-random-"), "{}", script.name);
    }
}

#[test]
fn unknown_names_are_not_found() {
    assert_eq!(find("sysbench-read"), None);
    assert_eq!(find("read-only"), None);
}

#[test]
fn rows_are_those_of_prepare() {
    let options = SysbenchOptions { tables: 2, table_size: 50, ..Default::default() };
    let tables = data_set(&options, 1);
    let mut rows = Vec::new();
    tables[1].write_rows(0..50, &mut rows);
    let rows = String::from_utf8(rows).unwrap();
    for (at, row) in rows.lines().enumerate() {
        let columns: Vec<&str> = row.split('\t').collect();
        assert_eq!(columns[0], (at + 1).to_string());
        assert!((1..=50).contains(&columns[1].parse().unwrap()));
        assert_eq!((columns[2].len(), columns[3].len(), columns.len()), (119, 59, 4));
    }
    assert_eq!(rows.lines().count(), 50);
}

#[test]
fn rows_depend_on_the_seed_and_the_table_and_not_on_the_part_written_first() {
    let options = SysbenchOptions { tables: 2, table_size: 100, ..Default::default() };
    let rows = |seed, table: usize, range| {
        let mut rows = Vec::new();
        data_set(&options, seed)[table].write_rows(range, &mut rows);
        rows
    };
    let all = rows(1, 0, 0..100);
    assert_eq!(all, rows(1, 0, 0..100));
    assert!(all.ends_with(&rows(1, 0, 90..100)));
    assert_ne!(all, rows(2, 0, 0..100));
    assert_ne!(all, rows(1, 1, 0..100));
}
