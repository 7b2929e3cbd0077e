//! The tables of sysbench's `prepare`, row for row, except for the random digits.

use super::client::{C_GROUPS, PAD_GROUPS};
use crate::random::Random;
use crate::workload::data_set::{Table, write_integer};
use crate::workload::options::SysbenchOptions;

/// The initial tables of all scripts. Keys `k` are uniform regardless of the run's distribution, so that runs
/// with different distributions can share the data.
///
/// The state is the same as after `sysbench prepare` and VACUUM (FREEZE, ANALYZE).
pub fn data_set(options: &SysbenchOptions, seed: u64) -> Vec<Table> {
    (1..=options.tables).map(|number| table(number, options.table_size, seed)).collect()
}

fn table(number: i64, rows: i64, seed: u64) -> Table {
    let name = format!("sbtest{number}");
    let purpose = name.clone();
    let mut table = Table::new(&name, rows as u64, move |row, out| {
        let mut random = Random::stream(seed, &purpose, row);
        write_integer(row + 1, out);
        out.push(b'\t');
        write_integer(random.between(1, rows), out);
        out.push(b'\t');
        random.write_digit_groups(C_GROUPS, out);
        out.push(b'\t');
        random.write_digit_groups(PAD_GROUPS, out);
        out.push(b'\n');
    });
    table.create = vec![format!(
        "CREATE TABLE {name}(
  id SERIAL,
  k INTEGER DEFAULT '0' NOT NULL,
  c CHAR(120) DEFAULT '' NOT NULL,
  pad CHAR(60) DEFAULT '' NOT NULL,
  PRIMARY KEY (id)
)"
    )];
    table.copy = format!("COPY {name} (id, k, c, pad) FROM STDIN WITH (FREEZE)");
    table.after = vec![
        // In sysbench, `id` comes from the sequence.
        format!("SELECT setval('{name}_id_seq', {rows})"),
        format!("CREATE INDEX k_{number} ON {name}(k)"),
        format!("VACUUM (FREEZE, ANALYZE) {name}"),
    ];
    table
}
