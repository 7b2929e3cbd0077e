//! Scans of tables and of ranges, which benefit from read-ahead. One statement per transaction, on sysbench's
//! tables.
//!
//! Every transaction draws a table. With a few thousand pages per table, a scan ends within a turn, while all
//! tables together can have any size. A range is 1/200 of the table if its rows are scattered, 1/20 if they
//! are contiguous: the server then chooses the same plan whether it knows the range (custom plan) or not
//! (generic plan).

use super::options::SysbenchOptions;
use super::{Client, Next, Pace, Place, Role, Statement, Transaction};
use crate::error::Result;
use crate::random::Random;

/// The name of the only role.
const ROLE: &str = "main";

/// A workload of this family.
#[derive(Debug)]
pub struct Scan {
    /// The workload's name.
    pub name: &'static str,
    /// The statement; `#` is the table's number.
    sql: &'static str,
    /// A range has 1/`one_in` of the table's rows. `None`: the statement has no parameters.
    one_in: Option<i64>,
}

/// All scans. pgdyno's tests check that they use the plans they are named after.
pub static SCANS: [Scan; 3] = [
    // No index covers both columns.
    Scan { name: "scan-sequential", sql: "SELECT sum(k - id) FROM sbtest#", one_in: None },
    // `k` is random, so the rows of a range are on different pages.
    Scan {
        name: "scan-bitmap",
        sql: "SELECT sum(id) FROM sbtest# WHERE k BETWEEN $1 AND $2",
        one_in: Some(200),
    },
    // Rows are stored in the order of `id`.
    Scan {
        name: "scan-index",
        sql: "SELECT sum(k) FROM sbtest# WHERE id BETWEEN $1 AND $2",
        one_in: Some(20),
    },
];

/// The scan with this workload name.
pub fn find(name: &str) -> Option<&'static Scan> {
    SCANS.iter().find(|scan| scan.name == name)
}

impl Scan {
    /// Refuses sizes that the tables cannot hold.
    pub fn check(&self, options: &SysbenchOptions) -> Result<()> {
        options.check(self.name)
    }

    /// The clients of this scan. `options` must have passed `check`.
    pub fn roles(&'static self, options: &SysbenchOptions, clients: u64, seed: u64, pace: Pace) -> Vec<Role> {
        let statements = (1..=options.tables)
            .map(|table| Statement::prepared("scan", self.sql.replace('#', &table.to_string())))
            .collect();
        let stream = |client| {
            Box::new(ScanClient::new(self, options, Place { client, clients, seed })) as Box<dyn Client>
        };
        vec![Role { name: ROLE, statements, clients: (0..clients).map(stream).collect(), pace }]
    }
}

/// One client's stream of scans.
struct ScanClient {
    tables: i64,
    rows: i64,
    /// Rows per range; `None`: the statement has no parameters.
    range: Option<i64>,
    random: Random,
}

impl ScanClient {
    fn new(scan: &Scan, options: &SysbenchOptions, place: Place) -> Self {
        Self {
            tables: options.tables,
            rows: options.table_size,
            range: scan.one_in.map(|part| (options.table_size / part).max(1)),
            random: Random::stream(place.seed, ROLE, place.client),
        }
    }
}

impl Client for ScanClient {
    fn next(&mut self, transaction: &mut Transaction) -> Next {
        let table = self.random.between(0, self.tables - 1) as usize;
        let call = transaction.call(table);
        if let Some(range) = self.range {
            let first = self.random.between(1, self.rows - range + 1);
            call.int(first).int(first + range - 1);
        }
        Next::Ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::recorded::next_transaction;

    fn role(name: &str, table_size: i64) -> Role {
        let options = SysbenchOptions { tables: 3, table_size, ..SysbenchOptions::default() };
        find(name).unwrap().roles(&options, 2, 1, Pace::Closed).remove(0)
    }

    #[test]
    fn a_transaction_is_one_statement_on_one_of_the_tables() {
        let mut role = role("scan-sequential", 1000);
        let mut seen: Vec<String> = (0..100)
            .map(|_| {
                let [only] = &next_transaction(&mut role, 0)[..] else { panic!("more than one statement") };
                assert!(only.parameters.is_empty());
                only.text.clone()
            })
            .collect();
        seen.sort();
        seen.dedup();
        let tables = ["sbtest1", "sbtest2", "sbtest3"];
        assert_eq!(seen, tables.map(|table| format!("SELECT sum(k - id) FROM {table}")));
    }

    #[test]
    fn ranges_have_their_part_of_the_table_and_lie_within_it() {
        for (name, table_size, length) in
            [("scan-bitmap", 50_000, 250), ("scan-index", 50_000, 2500), ("scan-index", 7, 1)]
        {
            let mut role = role(name, table_size);
            for _ in 0..1000 {
                let [range] = &next_transaction(&mut role, 1)[..] else { panic!("more than one statement") };
                let numbers: Vec<i64> = range.parameters.iter().map(|text| text.parse().unwrap()).collect();
                let [first, last] = numbers[..] else { panic!("{numbers:?}") };
                assert!(1 <= first && last <= table_size && last - first + 1 == length, "{first} {last}");
            }
        }
    }

    #[test]
    fn clients_have_streams_of_their_own_and_equal_seeds_repeat_them() {
        let first = |client| next_transaction(&mut role("scan-index", 1_000_000), client);
        assert_eq!(first(0), first(0));
        assert_ne!(first(0), first(1));
    }

    #[test]
    fn tables_that_cannot_be_are_refused() {
        let options = SysbenchOptions { tables: 0, ..SysbenchOptions::default() };
        let message = find("scan-index").unwrap().check(&options).unwrap_err().message;
        assert_eq!(message, "option \"tables\" of workload \"scan-index\" cannot be 0");
    }
}
