//! Synthetic timestamps of rows, so that two servers get the same rows.
//!
//! The reference client writes its wall clock, in whole seconds. Here, the k-th insert statement of a step (k
//! from 0) has the timestamp `start + k / statements per second`, in whole seconds. With a rate, this is when
//! the statement is due; without one, the number per second is an option. Each step begins a million seconds
//! after the previous one, so that time never goes back: in index pdc, new rows belong after the old ones
//! with the same price.

use crate::workload::calendar::{SECONDS_PER_DAY, civil_date, write_padded};
use crate::workload::data_set::write_integer;

/// The time range of a step: eleven and a half days, longer than the maximum duration of a step.
pub const SECONDS_PER_STEP: i64 = 1_000_000;

/// Computes the timestamp of every insert statement.
#[derive(Clone, Copy, Debug)]
pub struct StatementClock {
    /// The timestamp of the first statement, in seconds since 1970.
    pub start_s: i64,
    /// Number of statements with the same timestamp.
    pub statements_per_second: u64,
}

impl StatementClock {
    /// Appends a statement's timestamp (statements are counted from 0), without time zone.
    pub fn write(self, statement: u64, out: &mut Vec<u8>) {
        let elapsed_s = statement / self.statements_per_second;
        write_timestamp(self.start_s.saturating_add_unsigned(elapsed_s), out);
    }
}

/// Appends a time in seconds since 1970 as `2026-01-01 00:00:00`. Requires a year from 1970 to 9999.
fn write_timestamp(seconds: i64, out: &mut Vec<u8>) {
    let (year, month, day) = civil_date(seconds.div_euclid(SECONDS_PER_DAY));
    let second = seconds.rem_euclid(SECONDS_PER_DAY);
    write_integer(year, out);
    for (separator, number) in
        [(b'-', month), (b'-', day), (b' ', second / 3600), (b':', second / 60 % 60), (b':', second % 60)]
    {
        out.push(separator);
        write_padded(number, 2, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_as_the_calendar_has_them() {
        // From Python's datetime.
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_868_800, "2000-03-01 00:00:00"),
            (1_709_208_000, "2024-02-29 12:00:00"),
            (1_767_225_600, "2026-01-01 00:00:00"),
            (4_107_542_399, "2100-02-28 23:59:59"),
            (253_402_300_799, "9999-12-31 23:59:59"),
        ] {
            let mut text = Vec::new();
            write_timestamp(seconds, &mut text);
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        }
    }

    #[test]
    fn as_many_statements_share_an_instant_as_there_are_per_second() {
        let clock = StatementClock { start_s: 1_767_225_600, statements_per_second: 20 };
        for (statement, expected) in [
            (0, "2026-01-01 00:00:00"),
            (19, "2026-01-01 00:00:00"),
            (20, "2026-01-01 00:00:01"),
            (72_000, "2026-01-01 01:00:00"),
        ] {
            let mut text = Vec::new();
            clock.write(statement, &mut text);
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        }
    }
}
