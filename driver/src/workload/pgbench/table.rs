//! The tables of `pgbench --initialize`, row for row and page for page.

use super::{ACCOUNTS, BRANCHES, TELLERS};
use crate::workload::data_set::{Table, write_integer};
use crate::workload::options::PgbenchOptions;

/// From this scale on, pgbench declares account numbers as bigint.
const BIGINT_SCALE: i64 = 20_000;

/// The tables that the scripts start from. Nothing in them is random.
pub fn data_set(options: &PgbenchOptions) -> Vec<Table> {
    let scale = options.scale;
    let aid = if scale >= BIGINT_SCALE { "bigint" } else { "int" };
    vec![history(aid), tellers(scale), accounts(aid, scale), branches(scale)]
}

fn history(aid: &str) -> Table {
    let columns = format!("tid int,bid int,aid {aid},delta int,mtime timestamp,filler char(22)");
    let mut table = table("pgbench_history", 0, |_, _| {});
    table.create.push(format!("create table pgbench_history({columns})"));
    table
}

fn tellers(scale: i64) -> Table {
    let mut table = table("pgbench_tellers", scale * TELLERS, |row, out| {
        write_integer(row + 1, out);
        out.push(b'\t');
        write_integer(row / TELLERS as u64 + 1, out);
        out.extend_from_slice(b"\t0\t\\N\n");
    });
    add_filled(&mut table, "tid int not null,bid int,tbalance int,filler char(84)", "tid");
    table
}

fn accounts(aid: &str, scale: i64) -> Table {
    let mut table = table("pgbench_accounts", scale * ACCOUNTS, |row, out| {
        write_integer(row + 1, out);
        out.push(b'\t');
        write_integer(row / ACCOUNTS as u64 + 1, out);
        out.extend_from_slice(b"\t0\t\n"); // an empty filler is stored as 84 blanks
    });
    add_filled(&mut table, &format!("aid {aid} not null,bid int,abalance int,filler char(84)"), "aid");
    table
}

fn branches(scale: i64) -> Table {
    let mut table = table("pgbench_branches", scale * BRANCHES, |row, out| {
        write_integer(row + 1, out);
        out.extend_from_slice(b"\t0\t\\N\n");
    });
    add_filled(&mut table, "bid int not null,bbalance int,filler char(88)", "bid");
    table
}

/// A table that replaces an older one, as pgbench does.
fn table(name: &str, rows: i64, row: impl Fn(u64, &mut Vec<u8>) + Send + Sync + 'static) -> Table {
    let mut table = Table::new(name, rows as u64, row);
    table.create = vec![format!("drop table if exists {name}")];
    table.copy = format!("copy {name} from stdin with (freeze on)");
    table.after = vec![format!("vacuum analyze {name}")];
    table
}

fn add_filled(table: &mut Table, columns: &str, key: &str) {
    let name = &table.name;
    table.create.push(format!("create table {name}({columns}) with (fillfactor=100)"));
    table.after.push(format!("alter table {name} add primary key ({key})"));
}
