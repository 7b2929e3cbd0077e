//! Loads the initial tables of a workload.

use std::time::Duration;

use crate::connect::Connection;
use crate::conninfo::ConnInfo;
use crate::error::Result;
use crate::workload::data_set::Table;

const CHUNK_ROWS: u64 = 500;

/// Creates and fills tables, one after another. `answer_limit` limits each statement. `progress` receives the
/// rows loaded so far and the total.
pub fn load(
    info: &ConnInfo,
    tables: &[Table],
    answer_limit: Duration,
    mut progress: impl FnMut(u64, u64),
) -> Result<()> {
    let mut connection = Connection::open(info)?;
    connection.print_note();
    connection.set_answer_limit(answer_limit)?;
    let total = tables.iter().map(|table| table.rows).sum();
    let mut done = 0;
    for table in tables {
        connection.execute("BEGIN")?;
        for sql in &table.create {
            connection.execute(sql)?;
        }
        let mut next = 0;
        connection.copy_in(&table.copy, |out| {
            let end = (next + CHUNK_ROWS).min(table.rows);
            table.write_rows(next..end, out);
            done += end - next;
            next = end;
            progress(done, total);
            next < table.rows
        })?;
        connection.execute("COMMIT")?;
        for sql in &table.after {
            connection.execute(sql)?;
        }
    }
    Ok(())
}
