//! The options of the OLTP families: read from JSON, checked before anything is sent to a server.

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::random::Distribution;

/// The options of the sysbench family, with the names and defaults of sysbench 1.0.20, except that keys are
/// uniform by default, as in sysbench 1.1.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SysbenchOptions {
    /// Number of tables: `sbtest1`, `sbtest2`, …
    pub tables: i64,
    /// Rows per table.
    pub table_size: i64,
    /// Rows per range query.
    pub range_size: i64,
    /// Distribution of accesses over the rows.
    pub distribution: Distribution,
    /// Whether every statement is a separate transaction, without BEGIN and COMMIT.
    pub skip_trx: bool,
}

impl Default for SysbenchOptions {
    fn default() -> Self {
        Self {
            tables: 1,
            table_size: 10_000,
            range_size: 100,
            distribution: Distribution::Uniform,
            skip_trx: false,
        }
    }
}

impl SysbenchOptions {
    /// Arbitrary: each connection prepares up to nine statements per table.
    const MAX_TABLES: i64 = 10_000;
    /// The columns `id` and `k` are of type integer.
    const MAX_TABLE_SIZE: i64 = i32::MAX as i64;

    /// Refuses sizes that sysbench's tables cannot hold. `workload` is for the message.
    pub fn check(&self, workload: &str) -> Result<()> {
        check_range(workload, "tables", self.tables, Self::MAX_TABLES)?;
        check_range(workload, "table_size", self.table_size, Self::MAX_TABLE_SIZE)?;
        check_range(workload, "range_size", self.range_size, Self::MAX_TABLE_SIZE)
    }

    /// Refuses more than one table: `select_random_points` and `select_random_ranges` read only `sbtest1`.
    pub fn check_one_table(&self, workload: &str) -> Result<()> {
        if self.tables == 1 {
            return Ok(());
        }
        Err(Error::new(format!("cannot run workload \"{workload}\" with {} tables", self.tables))
            .detail("it reads sbtest1 only, as in sysbench")
            .hint("set option \"tables\" to 1, or omit it"))
    }
}

/// The options of pgbench's built-in scripts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PgbenchOptions {
    /// One unit is 1 branch, 10 tellers and 100,000 accounts.
    pub scale: i64,
    /// Number of schemas with these tables, one per client; 0: all clients share the tables of one schema.
    pub schemas: u64,
}

impl Default for PgbenchOptions {
    fn default() -> Self {
        Self { scale: 1, schemas: 0 }
    }
}

impl PgbenchOptions {
    /// There are ten tellers per unit, with numbers of type integer.
    const MAX_SCALE: i64 = i32::MAX as i64 / 10;
    /// The maximum number of clients of a job.
    const MAX_SCHEMAS: u64 = 100_000;

    /// Refuses sizes that pgbench's tables cannot hold. `workload` is for the message.
    pub fn check(&self, workload: &str) -> Result<()> {
        check_range(workload, "scale", self.scale, Self::MAX_SCALE)?;
        if self.schemas <= Self::MAX_SCHEMAS {
            return Ok(());
        }
        Err(Error::new(format!("option \"schemas\" of workload \"{workload}\" cannot be {}", self.schemas))
            .hint(format!("give a number from 0 to {}", Self::MAX_SCHEMAS)))
    }
}

fn check_range(workload: &str, option: &str, value: i64, max: i64) -> Result<()> {
    if (1..=max).contains(&value) {
        return Ok(());
    }
    Err(Error::new(format!("option \"{option}\" of workload \"{workload}\" cannot be {value}"))
        .hint(format!("give a number from 1 to {max}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysbench(json: &str) -> serde_json::Result<SysbenchOptions> {
        serde_json::from_str(json)
    }

    #[test]
    fn options_that_are_left_out_have_the_defaults_of_sysbench() {
        let options = sysbench("{}").unwrap();
        assert_eq!((options.tables, options.table_size, options.range_size), (1, 10_000, 100));
        assert_eq!((options.distribution, options.skip_trx), (Distribution::Uniform, false));
        assert_eq!(options.check("sysbench-read-only"), Ok(()));
    }

    #[test]
    fn options_are_read_by_name() {
        let options = sysbench(r#"{"tables": 8, "distribution": "zipfian", "skip_trx": true}"#).unwrap();
        assert_eq!((options.tables, options.distribution), (8, Distribution::Zipfian));
        assert!(options.skip_trx);
    }

    #[test]
    fn unknown_options_and_distributions_are_refused_by_name() {
        let message = sysbench(r#"{"table": 8}"#).unwrap_err().to_string();
        assert!(
            message.starts_with("unknown field `table`, expected one of `tables`, `table_size`"),
            "{message}"
        );
        let message = sysbench(r#"{"distribution": "zipf"}"#).unwrap_err().to_string();
        assert!(message.starts_with("unknown variant `zipf`, expected one of `uniform`"), "{message}");
    }

    #[test]
    fn sizes_beyond_the_type_of_the_column_are_refused() {
        let options = sysbench(r#"{"table_size": 2147483648}"#).unwrap();
        assert_eq!(
            options.check("sysbench-insert").unwrap_err().to_string(),
            "error: option \"table_size\" of workload \"sysbench-insert\" cannot be 2147483648\n\
             hint: give a number from 1 to 2147483647"
        );
        let options = PgbenchOptions { scale: 214_748_365, schemas: 0 };
        assert_eq!(
            options.check("pgbench-tpcb").unwrap_err().to_string(),
            "error: option \"scale\" of workload \"pgbench-tpcb\" cannot be 214748365\n\
             hint: give a number from 1 to 214748364"
        );
    }

    #[test]
    fn nothing_may_be_zero_or_negative() {
        for option in ["tables", "table_size", "range_size"] {
            for value in [0, -5] {
                let options = sysbench(&format!(r#"{{"{option}": {value}}}"#)).unwrap();
                let message = options.check("w").unwrap_err().message;
                assert_eq!(message, format!("option \"{option}\" of workload \"w\" cannot be {value}"));
            }
        }
        assert_eq!(PgbenchOptions { scale: 1, schemas: 0 }.check("w"), Ok(()));
        assert!(PgbenchOptions { scale: 0, schemas: 0 }.check("w").is_err());
        let message = PgbenchOptions { scale: 1, schemas: 100_001 }.check("w").unwrap_err().message;
        assert_eq!(message, "option \"schemas\" of workload \"w\" cannot be 100001");
    }

    #[test]
    fn several_tables_are_refused_where_only_the_first_is_read() {
        let options = SysbenchOptions { tables: 2, ..Default::default() };
        assert_eq!(
            options.check_one_table("sysbench-select-random-points").unwrap_err().to_string(),
            "error: cannot run workload \"sysbench-select-random-points\" with 2 tables\n\
             detail: it reads sbtest1 only, as in sysbench\n\
             hint: set option \"tables\" to 1, or omit it"
        );
    }
}
