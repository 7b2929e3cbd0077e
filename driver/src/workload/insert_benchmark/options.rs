//! The options of the Insert Benchmark: read from JSON, checked before anything is sent to a server.

use std::fmt::Display;

use serde::Deserialize;

use crate::error::{Error, Result};

/// How large the benchmark is, and how its load is controlled.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// How many clients there are; each has its own table and up to four connections.
    pub clients: u64,
    /// Rows per client of the steps that insert as fast as they can.
    pub rows: Rows,
    /// How long the steps with a rate are meant to last.
    pub step_seconds: u64,
    /// The same for servers that are compared.
    pub seed: u64,
    /// How load is controlled.
    #[serde(default)]
    pub mode: Mode,
    /// What ends the steps after `l.x`.
    #[serde(default)]
    pub ends: Ends,
    /// Whether as many rows are deleted as are inserted, in the steps after `l.x`.
    #[serde(default = "yes")]
    pub deletes: bool,
    /// How many values the columns have.
    #[serde(default)]
    pub domains: Domains,
    /// How long column `data` is.
    #[serde(default)]
    pub data_length: DataLength,
    /// What goes into column `dateandtime`.
    #[serde(default)]
    pub timestamps: Timestamps,
}

/// Rows per client, by step; the sizes that are published as X/Y/Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rows {
    /// Inserted by `l.i0`: the table's size (X).
    pub i0: u64,
    /// Inserted and deleted by `l.i1` (Y).
    pub i1: u64,
    /// Inserted and deleted by `l.i2` (Z).
    pub i2: u64,
}

/// How load is controlled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// As the reference client does: rates are bursts once a second, what is missed is not caught up.
    Faithful,
    /// Rates are open loops with uniform arrivals, and latency counts from when a statement was due.
    #[default]
    Corrected,
}

/// What ends the steps after `l.x`. `l.i0` and `l.x` always end after their rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ends {
    /// A number of inserted rows: those of `rows`, or the step's rate times `step_seconds`.
    #[default]
    Count,
    /// Nothing: the clients go on until the caller stops them. Not in faithful mode.
    Time,
}

/// How many values the columns have: each is drawn uniformly from 0 to one less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Domains {
    /// Of `cashregisterid`.
    pub cash_registers: i64,
    /// Of `customerid`.
    pub customers: i64,
    /// Of `productid`.
    pub products: i64,
    /// Of `price`.
    pub prices: i64,
}

impl Default for Domains {
    fn default() -> Self {
        Self { cash_registers: 1000, customers: 100_000, products: 10_000, prices: 500 }
    }
}

/// The length of column `data`, drawn uniformly; both ends are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataLength {
    /// The shortest, in characters.
    pub min: i64,
    /// The longest.
    pub max: i64,
}

impl Default for DataLength {
    fn default() -> Self {
        Self { min: 10, max: 20 }
    }
}

/// The made-up time that goes into rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timestamps {
    /// When `l.i0` begins, in seconds since 1970.
    pub start_s: i64,
    /// How many insert statements have the same timestamp in the steps without a rate. The reference has as many as
    /// the server does in a second, which would not be the same on two servers.
    pub statements_per_second: u64,
}

impl Default for Timestamps {
    /// 2026-01-01. A hundred statements per second is arbitrary.
    fn default() -> Self {
        Self { start_s: 1_767_225_600, statements_per_second: 100 }
    }
}

/// Arbitrary: four connections each.
const MAX_CLIENTS: u64 = 1000;
/// Arbitrary: a thousand times the largest published table. Sequences end later.
const MAX_ROWS: u64 = 1_000_000_000_000;
/// A week, which fits into the timestamps of a step.
const MAX_STEP_SECONDS: u64 = 604_800;
/// The columns are of type integer.
const MAX_VALUES: i64 = i32::MAX as i64;
/// `data` is a varchar(4000).
pub(super) const MAX_DATA_LENGTH: i64 = 4000;
/// The year 2100. Years must keep four digits until the end of the last step.
const MAX_START_S: i64 = 4_102_444_800;
/// Arbitrary.
const MAX_STATEMENTS_PER_SECOND: u64 = 1_000_000;

impl Options {
    /// Refuses sizes that the tables cannot hold, and contradictions.
    pub fn check(&self) -> Result<()> {
        let DataLength { min, max } = self.data_length;
        let Timestamps { start_s, statements_per_second } = self.timestamps;
        check_range("clients", self.clients, 1, MAX_CLIENTS)?;
        check_range("rows.i0", self.rows.i0, 1, MAX_ROWS)?;
        check_range("rows.i1", self.rows.i1, 1, MAX_ROWS)?;
        check_range("rows.i2", self.rows.i2, 1, MAX_ROWS)?;
        check_range("step_seconds", self.step_seconds, 1, MAX_STEP_SECONDS)?;
        check_range("domains.cash_registers", self.domains.cash_registers, 1, MAX_VALUES)?;
        check_range("domains.customers", self.domains.customers, 1, MAX_VALUES)?;
        check_range("domains.products", self.domains.products, 1, MAX_VALUES)?;
        check_range("domains.prices", self.domains.prices, 1, MAX_VALUES)?;
        check_range("data_length.max", max, 1, MAX_DATA_LENGTH)?;
        check_range("data_length.min", min, 1, max)?;
        check_range("timestamps.start_s", start_s, 0, MAX_START_S)?;
        check_range("timestamps.statements_per_second", statements_per_second, 1, MAX_STATEMENTS_PER_SECOND)?;
        self.check_ends()
    }

    fn check_ends(&self) -> Result<()> {
        if self.mode == Mode::Faithful && self.ends == Ends::Time {
            return Err(Error::new("cannot end the steps of the Insert Benchmark by time in faithful mode")
                .detail("the reference client ends them after a number of inserted rows")
                .hint("set option \"ends\" to \"count\", or \"mode\" to \"corrected\""));
        }
        Ok(())
    }
}

fn yes() -> bool {
    true
}

fn check_range<T: Copy + PartialOrd + Display>(option: &str, value: T, min: T, max: T) -> Result<()> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(Error::new(format!("option \"{option}\" of the Insert Benchmark cannot be {value}"))
        .hint(format!("give a number from {min} to {max}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALLEST: &str =
        r#"{"clients": 2, "rows": {"i0": 1000, "i1": 500, "i2": 50}, "step_seconds": 10, "seed": 1}"#;

    fn read(json: &str) -> serde_json::Result<Options> {
        serde_json::from_str(json)
    }

    fn options() -> Options {
        read(SMALLEST).unwrap()
    }

    fn message(options: &Options) -> String {
        options.check().unwrap_err().to_string()
    }

    #[test]
    fn options_that_are_left_out_have_the_published_values() {
        let options = options();
        let Domains { cash_registers, customers, products, prices } = options.domains;
        assert_eq!((cash_registers, customers, products, prices), (1000, 100_000, 10_000, 500));
        assert_eq!((options.data_length.min, options.data_length.max), (10, 20));
        assert_eq!((options.mode, options.ends, options.deletes), (Mode::Corrected, Ends::Count, true));
        assert_eq!(options.check(), Ok(()));
    }

    #[test]
    fn unknown_options_are_refused_by_name() {
        let json = SMALLEST.replace("\"seed\"", "\"sede\"");
        assert!(read(&json).unwrap_err().to_string().starts_with("unknown field `sede`"));
        let json = SMALLEST.replace("\"i2\": 50", "\"i2\": 50, \"i3\": 1");
        assert!(read(&json).unwrap_err().to_string().starts_with("unknown field `i3`"));
    }

    #[test]
    fn sizes_out_of_range_are_refused_with_the_range() {
        let refused = Options { clients: 0, ..options() };
        assert_eq!(
            message(&refused),
            "error: option \"clients\" of the Insert Benchmark cannot be 0\nhint: give a number from 1 to 1000"
        );
        let domains = Domains { prices: 2_147_483_648, ..Domains::default() };
        assert_eq!(
            message(&Options { domains, ..options() }),
            "error: option \"domains.prices\" of the Insert Benchmark cannot be 2147483648\n\
             hint: give a number from 1 to 2147483647"
        );
        let data_length = DataLength { min: 21, max: 20 };
        assert_eq!(
            message(&Options { data_length, ..options() }),
            "error: option \"data_length.min\" of the Insert Benchmark cannot be 21\n\
             hint: give a number from 1 to 20"
        );
    }

    #[test]
    fn times_before_1970_are_refused() {
        let timestamps = Timestamps { start_s: -1, ..Timestamps::default() };
        assert_eq!(
            message(&Options { timestamps, ..options() }),
            "error: option \"timestamps.start_s\" of the Insert Benchmark cannot be -1\n\
             hint: give a number from 0 to 4102444800"
        );
    }

    #[test]
    fn faithful_steps_do_not_end_by_time() {
        let refused = Options { mode: Mode::Faithful, ends: Ends::Time, ..options() };
        assert_eq!(
            message(&refused),
            "error: cannot end the steps of the Insert Benchmark by time in faithful mode\n\
             detail: the reference client ends them after a number of inserted rows\n\
             hint: set option \"ends\" to \"count\", or \"mode\" to \"corrected\""
        );
    }
}
