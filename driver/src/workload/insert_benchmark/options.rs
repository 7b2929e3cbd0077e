//! The options of the Insert Benchmark: read from JSON, checked before anything is sent to a server.

use std::fmt::Display;

use serde::Deserialize;

use crate::error::{Error, Result};

/// The size of the benchmark, and its load control.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Number of clients; each has its own table and up to four connections.
    pub clients: u64,
    /// Rows per client, for the steps that insert at full speed.
    pub rows: Rows,
    /// Planned duration of the steps with a rate.
    pub step_seconds: u64,
    /// Random seed; the same for all compared servers.
    pub seed: u64,
    /// Load control.
    #[serde(default)]
    pub mode: Mode,
    /// What ends the steps after `l.x`.
    #[serde(default)]
    pub ends: Ends,
    /// Whether the steps after `l.x` delete as many rows as they insert.
    #[serde(default = "yes")]
    pub deletes: bool,
    /// Number of distinct values of the columns.
    #[serde(default)]
    pub domains: Domains,
    /// Length of column `data`.
    #[serde(default)]
    pub data_length: DataLength,
    /// Values of column `dateandtime`.
    #[serde(default)]
    pub timestamps: Timestamps,
}

/// Rows per client, by step: the sizes published as X/Y/Z.
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

/// Load control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// As in the reference client: rates are bursts once a second; missed statements are not made up.
    Faithful,
    /// Rates are open loops with uniform arrivals; latency is measured from the intended start.
    #[default]
    Corrected,
}

/// What ends the steps after `l.x`. `l.i0` and `l.x` always end after a number of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ends {
    /// A number of inserted rows: from `rows`, or the step's rate times `step_seconds`.
    #[default]
    Count,
    /// Nothing: the clients continue until the caller stops them. Not valid in faithful mode.
    Time,
}

/// Number of distinct values of each column: n values are drawn uniformly from 0 to n - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Domains {
    /// Column `cashregisterid`.
    pub cash_registers: i64,
    /// Column `customerid`.
    pub customers: i64,
    /// Column `productid`.
    pub products: i64,
    /// Column `price`.
    pub prices: i64,
}

impl Default for Domains {
    fn default() -> Self {
        Self { cash_registers: 1000, customers: 100_000, products: 10_000, prices: 500 }
    }
}

/// The length of column `data`, drawn uniformly from an inclusive range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataLength {
    /// The minimum, in characters.
    pub min: i64,
    /// The maximum, in characters.
    pub max: i64,
}

impl Default for DataLength {
    fn default() -> Self {
        Self { min: 10, max: 20 }
    }
}

/// The synthetic timestamps of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timestamps {
    /// The first timestamp of `l.i0`, in seconds since 1970.
    pub start_s: i64,
    /// Insert statements per second of these timestamps, in the steps without a rate. In the reference this
    /// depends on the server's speed, so that two servers would get different rows.
    pub statements_per_second: u64,
}

impl Default for Timestamps {
    /// 2026-01-01. A hundred statements per second is arbitrary.
    fn default() -> Self {
        Self { start_s: 1_767_225_600, statements_per_second: 100 }
    }
}

/// Arbitrary; each has up to four connections.
const MAX_CLIENTS: u64 = 1000;
/// Arbitrary: a thousand times the largest published table, within the range of sequences.
const MAX_ROWS: u64 = 1_000_000_000_000;
/// A week, shorter than the timestamp range of a step.
const MAX_STEP_SECONDS: u64 = 604_800;
/// The columns are of type integer.
const MAX_VALUES: i64 = i32::MAX as i64;
/// `data` is a varchar(4000).
pub(super) const MAX_DATA_LENGTH: i64 = 4000;
/// The year 2100. Years must have four digits until the end of the last step.
const MAX_START_S: i64 = 4_102_444_800;
/// Arbitrary.
const MAX_STATEMENTS_PER_SECOND: u64 = 1_000_000;

impl Options {
    /// Refuses sizes that the tables cannot hold, and contradictory options.
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
