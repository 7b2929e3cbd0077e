//! The tables of `pgbench --initialize`, row for row and page for page.

use super::{ACCOUNTS, BRANCHES, TELLERS};
use crate::workload::data_set::{Table, write_integer};
use crate::workload::options::PgbenchOptions;
use crate::workload::schema_of_client;

/// pgbench declares account numbers as bigint from this scale on.
const BIGINT_SCALE: i64 = 20_000;

/// The initial tables of the scripts, in every schema. They contain no random values.
pub fn data_set(options: &PgbenchOptions) -> Vec<Table> {
    if options.schemas == 0 {
        return tables("", options.scale);
    }
    (1..=options.schemas).map(schema_of_client).flat_map(|name| in_schema(&name, options.scale)).collect()
}

/// The tables of one client; the first one also creates their schema.
fn in_schema(name: &str, scale: i64) -> Vec<Table> {
    let mut own = tables(&format!("{name}."), scale);
    own[0].create.insert(0, format!("create schema if not exists {name}"));
    own
}

/// The tables, with names prefixed by `place`: a schema and a dot, or empty.
fn tables(place: &str, scale: i64) -> Vec<Table> {
    let aid = if scale >= BIGINT_SCALE { "bigint" } else { "int" };
    vec![history(place, aid), tellers(place, scale), accounts(place, aid, scale), branches(place, scale)]
}

fn history(place: &str, aid: &str) -> Table {
    let columns = format!("tid int,bid int,aid {aid},delta int,mtime timestamp,filler char(22)");
    let mut table = table(place, "pgbench_history", 0, |_, _| {});
    table.create.push(format!("create table {}({columns})", table.name));
    table
}

fn tellers(place: &str, scale: i64) -> Table {
    let mut table = table(place, "pgbench_tellers", scale * TELLERS, |row, out| {
        write_integer(row + 1, out);
        out.push(b'\t');
        write_integer(row / TELLERS as u64 + 1, out);
        out.extend_from_slice(b"\t0\t\\N\n");
    });
    add_filled(&mut table, "tid int not null,bid int,tbalance int,filler char(84)", "tid");
    table
}

fn accounts(place: &str, aid: &str, scale: i64) -> Table {
    let mut table = table(place, "pgbench_accounts", scale * ACCOUNTS, |row, out| {
        write_integer(row + 1, out);
        out.push(b'\t');
        write_integer(row / ACCOUNTS as u64 + 1, out);
        out.extend_from_slice(b"\t0\t\n"); // an empty filler is stored as 84 blanks
    });
    add_filled(&mut table, &format!("aid {aid} not null,bid int,abalance int,filler char(84)"), "aid");
    table
}

fn branches(place: &str, scale: i64) -> Table {
    let mut table = table(place, "pgbench_branches", scale * BRANCHES, |row, out| {
        write_integer(row + 1, out);
        out.extend_from_slice(b"\t0\t\\N\n");
    });
    add_filled(&mut table, "bid int not null,bbalance int,filler char(88)", "bid");
    table
}

/// A table that replaces an existing one, as in pgbench.
fn table(
    place: &str,
    name: &str,
    rows: i64,
    row: impl Fn(u64, &mut Vec<u8>) + Send + Sync + 'static,
) -> Table {
    let name = format!("{place}{name}");
    let mut table = Table::new(name.clone(), rows as u64, row);
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
