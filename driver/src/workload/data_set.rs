//! Data sets: the initial tables of a workload, with seeded rows.
//!
//! Pure: a table has the statements to send, and writes its rows as bytes in COPY's text format. The same
//! seed gives the same bytes, in whatever order parts of a table are written.

use std::ops::Range;

/// A table and its rows.
///
/// To load it, send `create` and `copy` in one transaction (COPY FREEZE requires a table created in the same
/// transaction), then each of `after` separately.
pub struct Table {
    /// Its name in the database.
    pub name: String,
    /// Statements that create the table; an existing table is handled as in the original tool.
    pub create: Vec<String>,
    /// The COPY statement for the rows.
    pub copy: String,
    /// Number of rows.
    pub rows: u64,
    /// Statements after the COPY: keys, indexes, sequences, VACUUM.
    pub after: Vec<String>,
    row: Box<WriteRow>,
}

/// Appends the row of a number, counted from 0, in COPY's format (as text, with the newline).
type WriteRow = dyn Fn(u64, &mut Vec<u8>) + Send + Sync;

impl Table {
    /// Creates a table with rows written by `row`; the other fields are empty.
    pub fn new(
        name: impl Into<String>,
        rows: u64,
        row: impl Fn(u64, &mut Vec<u8>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            create: Vec::new(),
            copy: String::new(),
            rows,
            after: Vec::new(),
            row: Box::new(row),
        }
    }

    /// Appends the rows of a range of numbers, counted from 0, for `copy`.
    pub fn write_rows(&self, range: Range<u64>, out: &mut Vec<u8>) {
        for row in range {
            (self.row)(row, out);
        }
    }
}

/// Appends an integer in decimal.
pub(super) fn write_integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Writes a text or, if it is an integer and `plus` is not 0, their sum.
pub(super) fn write_sum(text: &[u8], plus: i64, out: &mut Vec<u8>) {
    let number = std::str::from_utf8(text).ok().and_then(|digits| digits.parse::<i64>().ok());
    match number {
        Some(number) if plus != 0 => write_integer(number.saturating_add(plus), out),
        _ => out.extend_from_slice(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_can_be_written_in_parts() {
        let table = Table::new("t", 1000, |row, out| {
            write_integer(row, out);
            out.push(b'\n');
        });
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        table.write_rows(0..1000, &mut whole);
        table.write_rows(0..3, &mut parts);
        table.write_rows(3..1000, &mut parts);
        assert_eq!(whole, parts);
        assert!(whole.starts_with(b"0\n1\n2\n3\n"));
    }
}
