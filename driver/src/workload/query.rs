//! A single statement without parameters, repeated: each transaction executes it once, and rolls it back if
//! it may write.
//!
//! `load` creates its usual table, `t_bit`, with a bit string of 200 random bits per row, like stored
//! document tags. The cost per row of a scan ranges from low (`count(*)`) to arbitrarily high (`bitand(id,
//! …)`).

use serde::Deserialize;

use super::data_set::Table;
use super::{Client, Next, Pace, Role, Statement, Transaction};
use crate::error::{Error, Result};
use crate::random::Random;

/// The name of the workload, its only role and its statement.
pub const NAME: &str = "query";

const TABLE: &str = "t_bit";
/// Set as `parallel_workers`, so that only the session's settings limit the number of workers, not the
/// table's size.
const MOST_WORKERS: u32 = 1024;
/// The partition key. It is cast because type bit has no hash function.
const KEY: &str = "substring(id FROM 1 FOR 64)::bigint";
const BITS: u32 = 200;
const BYTES: usize = BITS as usize / 8;
/// The header of COPY's binary format: signature, no flags, no header extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The trailer of COPY's binary format: a column count of -1.
const TRAILER: [u8; 2] = (-1i16).to_be_bytes();

/// The options of the workload.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QueryOptions {
    /// The statement.
    pub sql: String,
    /// Whether each execution is rolled back, for a statement that writes.
    pub rolled_back: bool,
    /// Rows of `t_bit`.
    pub rows: u64,
    /// Number of partitions of `t_bit`, by hash of the first 64 bits; 0: not partitioned.
    pub partitions: u64,
}

impl Default for QueryOptions {
    fn default() -> Self {
        let sql = format!("SELECT count(*) FROM {TABLE}");
        Self { sql, rolled_back: false, rows: 100_000, partitions: 0 }
    }
}

impl QueryOptions {
    /// Arbitrary: 60 TB.
    const MAX_ROWS: u64 = 1_000_000_000_000;
    /// Arbitrary: planning time increases with each.
    const MAX_PARTITIONS: u64 = 1_000;

    /// Refuses an empty statement, and sizes out of range.
    pub fn check(&self) -> Result<()> {
        if self.sql.trim().is_empty() {
            return Err(Error::new(format!("option \"sql\" of workload \"{NAME}\" is empty"))
                .hint("give a statement without parameters"));
        }
        within("rows", self.rows, 1, Self::MAX_ROWS)?;
        within("partitions", self.partitions, 0, Self::MAX_PARTITIONS)
    }

    /// The clients, which are all alike.
    pub fn roles(&self, clients: u64, pace: Pace) -> Vec<Role> {
        let statement = Statement::prepared(NAME, self.sql.clone());
        let statements = if self.rolled_back {
            vec![
                Statement::prepared("begin", "BEGIN"),
                statement,
                Statement::prepared("rollback", "ROLLBACK"),
            ]
        } else {
            vec![statement]
        };
        let same = Same { statements: statements.len() };
        let clients = (0..clients).map(|_| Box::new(same) as Box<dyn Client>).collect();
        vec![Role { name: NAME, statements, clients, pace }]
    }

    /// The table. Rows are copied in binary format, a sixth of the size of text.
    pub fn data_set(&self, seed: u64) -> Vec<Table> {
        let last = self.rows - 1;
        let mut table = Table::new(TABLE, self.rows, move |row, out| {
            if row == 0 {
                out.extend_from_slice(HEADER);
            }
            write_row(&mut Random::stream(seed, TABLE, row), out);
            if row == last {
                out.extend_from_slice(&TRAILER);
            }
        });
        table.create = self.create();
        let freeze = if self.partitions == 0 { ", FREEZE" } else { "" }; // refused for partitioned tables
        table.copy = format!("COPY {TABLE} FROM STDIN WITH (FORMAT binary{freeze})");
        table.after = vec![format!("VACUUM (FREEZE, ANALYZE) {TABLE}")];
        vec![table]
    }

    /// The statements that create the table. Storage parameters are set on each partition.
    fn create(&self) -> Vec<String> {
        let (table, count) = (format!("CREATE TABLE {TABLE}(id bit({BITS}))"), self.partitions);
        let option = format!("WITH (parallel_workers = {MOST_WORKERS})");
        if count == 0 {
            return vec![format!("{table} {option}")];
        }
        let parts = (0..count).map(|number| {
            let values = format!("FOR VALUES WITH (MODULUS {count}, REMAINDER {number})");
            format!("CREATE TABLE {TABLE}_{number} PARTITION OF {TABLE} {values} {option}")
        });
        std::iter::once(format!("{table} PARTITION BY HASH (({KEY}))")).chain(parts).collect()
    }
}

/// Refuses a number out of range.
fn within(option: &str, value: u64, least: u64, most: u64) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::new(format!("option \"{option}\" of workload \"{NAME}\" cannot be {value}"))
        .hint(format!("give a number from {least} to {most}")))
}

/// Writes a row of one column: the number of bits, and the bits.
fn write_row(random: &mut Random, out: &mut Vec<u8>) {
    const LENGTH: u32 = (size_of::<u32>() + BYTES) as u32;
    out.extend_from_slice(&1i16.to_be_bytes());
    out.extend_from_slice(&LENGTH.to_be_bytes());
    out.extend_from_slice(&BITS.to_be_bytes());
    let end = out.len() + BYTES;
    while out.len() < end {
        let bits = random.bits().to_be_bytes();
        let wanted = bits.len().min(end - out.len());
        out.extend_from_slice(&bits[..wanted]);
    }
}

/// A client: every transaction executes all statements in order.
#[derive(Clone, Copy)]
struct Same {
    statements: usize,
}

impl Client for Same {
    fn next(&mut self, transaction: &mut Transaction) -> Next {
        for statement in 0..self.statements {
            transaction.call(statement);
        }
        Next::Ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::recorded::next_transaction;

    #[test]
    fn a_transaction_is_the_statement_as_it_was_given() {
        let options = QueryOptions { sql: "SELECT 1".into(), ..QueryOptions::default() };
        let mut role = options.roles(2, Pace::Closed).remove(0);
        for client in [0, 1, 0] {
            let [only] = &next_transaction(&mut role, client)[..] else { panic!("more than one statement") };
            assert_eq!((only.text.as_str(), only.parameters.len()), ("SELECT 1", 0));
        }
    }

    #[test]
    fn a_statement_that_may_write_is_rolled_back_each_time() {
        let sql = "CREATE TABLE copied AS TABLE t_bit".into();
        let options = QueryOptions { sql, rolled_back: true, ..QueryOptions::default() };
        let mut role = options.roles(1, Pace::Closed).remove(0);
        for _ in 0..2 {
            let sent: Vec<_> = next_transaction(&mut role, 0).into_iter().map(|call| call.text).collect();
            assert_eq!(sent, ["BEGIN", "CREATE TABLE copied AS TABLE t_bit", "ROLLBACK"]);
        }
    }

    #[test]
    fn rows_are_a_file_in_the_binary_format_of_copy() {
        let table = QueryOptions { rows: 3, ..QueryOptions::default() }.data_set(1).remove(0);
        let mut bytes = Vec::new();
        table.write_rows(0..1, &mut bytes);
        table.write_rows(1..3, &mut bytes);
        let rows = bytes.strip_prefix(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0").unwrap();
        let rows = rows.strip_suffix(&[0xff, 0xff]).unwrap();
        assert_eq!(rows.len(), 3 * 35);
        let mut values = Vec::new();
        for row in rows.chunks(35) {
            // One column of 29 bytes: 200 as an integer, and 25 bytes of bits.
            assert_eq!(row[..10], [0, 1, 0, 0, 0, 29, 0, 0, 0, 200]);
            values.push(&row[10..]);
        }
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), 3);
    }

    #[test]
    fn a_partitioned_table_has_the_same_rows_in_parts_with_options_of_their_own() {
        let whole = QueryOptions { rows: 3, ..QueryOptions::default() }.data_set(1).remove(0);
        let parted = QueryOptions { rows: 3, partitions: 2, ..QueryOptions::default() }.data_set(1).remove(0);
        assert_eq!(
            parted.create,
            [
                "CREATE TABLE t_bit(id bit(200)) PARTITION BY HASH ((substring(id FROM 1 FOR 64)::bigint))",
                "CREATE TABLE t_bit_0 PARTITION OF t_bit FOR VALUES WITH (MODULUS 2, REMAINDER 0) \
                 WITH (parallel_workers = 1024)",
                "CREATE TABLE t_bit_1 PARTITION OF t_bit FOR VALUES WITH (MODULUS 2, REMAINDER 1) \
                 WITH (parallel_workers = 1024)",
            ]
        );
        assert_eq!(parted.copy, "COPY t_bit FROM STDIN WITH (FORMAT binary)");
        assert_eq!(whole.create, ["CREATE TABLE t_bit(id bit(200)) WITH (parallel_workers = 1024)"]);
        assert_eq!(whole.copy, "COPY t_bit FROM STDIN WITH (FORMAT binary, FREEZE)");
        let (mut one, mut other) = (Vec::new(), Vec::new());
        whole.write_rows(0..3, &mut one);
        parted.write_rows(0..3, &mut other);
        assert_eq!(one, other);
    }

    #[test]
    fn no_statement_no_rows_and_too_many_partitions_are_refused() {
        let options = QueryOptions { sql: " \n".into(), ..QueryOptions::default() };
        assert_eq!(options.check().unwrap_err().message, "option \"sql\" of workload \"query\" is empty");
        let options = QueryOptions { rows: 0, ..QueryOptions::default() };
        assert_eq!(
            options.check().unwrap_err().to_string(),
            "error: option \"rows\" of workload \"query\" cannot be 0\n\
             hint: give a number from 1 to 1000000000000"
        );
        let options = QueryOptions { partitions: 1_001, ..QueryOptions::default() };
        assert_eq!(
            options.check().unwrap_err().to_string(),
            "error: option \"partitions\" of workload \"query\" cannot be 1001\n\
             hint: give a number from 0 to 1000"
        );
    }
}
