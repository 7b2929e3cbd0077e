//! Statements for tables, indexes and the clean-up between the writing and the reading steps.
//!
//! The caller sends each statement separately, outside a transaction block.

use super::Options;

/// The table of a client, counted from 0: `pi1` is the first.
pub fn table(client: u64) -> String {
    format!("pi{}", client + 1)
}

/// Before `l.i0`: recreates a client's table, with a primary key only. Run in this order.
pub fn create_table(client: u64) -> [String; 3] {
    let table = table(client);
    [
        format!("drop table if exists {table}"),
        format!(
            "create table {table} (\
             transactionid bigserial primary key, \
             dateandtime timestamp without time zone, \
             cashregisterid int not null, \
             customerid int not null, \
             productid int not null, \
             price int not null, \
             data varchar(4000))"
        ),
        // Same as in the reference, so that backends rarely access the sequence.
        format!("alter sequence {table}_transactionid_seq cache 1000"),
    ]
}

/// In `l.x`, after its inserts: creates the secondary indexes of a client's table. Run one after another on
/// one connection, concurrently for all clients.
pub fn create_indexes(client: u64) -> [String; 3] {
    let table = table(client);
    [
        format!("create index {table}_marketsegment on {table} (productid, customerid, price)"),
        format!("create index {table}_registersegment on {table} (cashregisterid, customerid, price)"),
        format!("create index {table}_pdc on {table} (price, dateandtime, customerid)"),
    ]
}

/// The clean-up of the maintenance work that `l.i2` leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanUp {
    /// One per table, run concurrently, each on its own connection.
    pub vacuums: Vec<String>,
    /// Run after all of them.
    pub checkpoint: &'static str,
}

/// The clean-up after `l.i2`. `server_version` is the server's `server_version_num`.
///
/// The reference also specifies `verbose`, which only adds progress messages.
pub fn clean_up(options: &Options, server_version: u32) -> CleanUp {
    let arguments = if server_version >= 120_000 { "analyze, index_cleanup on" } else { "analyze" };
    CleanUp {
        vacuums: (0..options.clients)
            .map(|client| format!("vacuum ({arguments}) {}", table(client)))
            .collect(),
        checkpoint: "checkpoint",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_published_columns_and_a_cached_sequence() {
        assert_eq!(
            create_table(0),
            [
                "drop table if exists pi1",
                "create table pi1 (transactionid bigserial primary key, \
                 dateandtime timestamp without time zone, cashregisterid int not null, \
                 customerid int not null, productid int not null, price int not null, data varchar(4000))",
                "alter sequence pi1_transactionid_seq cache 1000",
            ]
        );
        assert_eq!(create_table(19)[0], "drop table if exists pi20");
    }

    #[test]
    fn indexes_have_the_columns_of_the_code_rather_than_of_the_prose() {
        assert_eq!(
            create_indexes(1),
            [
                "create index pi2_marketsegment on pi2 (productid, customerid, price)",
                "create index pi2_registersegment on pi2 (cashregisterid, customerid, price)",
                "create index pi2_pdc on pi2 (price, dateandtime, customerid)",
            ]
        );
    }

    #[test]
    fn clean_up_vacuums_every_table_and_indexes_where_that_is_an_option() {
        let json = r#"{"clients": 2, "rows": {"i0": 10, "i1": 10, "i2": 10}, "step_seconds": 1, "seed": 1}"#;
        let options: Options = serde_json::from_str(json).unwrap();
        assert_eq!(
            clean_up(&options, 180_001),
            CleanUp {
                vacuums: vec![
                    "vacuum (analyze, index_cleanup on) pi1".into(),
                    "vacuum (analyze, index_cleanup on) pi2".into()
                ],
                checkpoint: "checkpoint",
            }
        );
        assert_eq!(clean_up(&options, 119_999).vacuums[1], "vacuum (analyze) pi2");
    }
}
