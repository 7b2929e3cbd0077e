//! Data sets: the tables that a workload starts from, with seeded rows.
//!
//! Pure: a table says what to send, and rows come out as bytes in COPY's text format. The same seed gives the
//! same bytes, whichever part of a table is written first. Connections are elsewhere.

use std::ops::Range;

/// A table and its rows.
///
/// To load it, `create` and `copy` are sent in one transaction (PostgreSQL refuses to copy frozen rows into a
/// table that is older), and then each of `after` by itself.
pub struct Table {
    /// What it is called in the database.
    pub name: String,
    /// Statements that make the table; what is there already is treated as the original tool treats it.
    pub create: Vec<String>,
    /// The COPY statement that takes the rows.
    pub copy: String,
    /// How many rows there are.
    pub rows: u64,
    /// Statements for when the rows are there: keys, indexes, sequences, VACUUM.
    pub after: Vec<String>,
    row: Box<WriteRow>,
}

/// Appends one row, of the given number from 0, in COPY's text format, with the newline.
type WriteRow = dyn Fn(u64, &mut Vec<u8>) + Send + Sync;

impl Table {
    /// Makes a table whose rows are written by `row`; the other fields are empty.
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

    /// Appends the rows of a range of numbers, which start at 0, for `copy`.
    pub fn write_rows(&self, range: Range<u64>, out: &mut Vec<u8>) {
        for row in range {
            (self.row)(row, out);
        }
    }
}

/// Appends an integer, as rows and statements spell it.
pub(super) fn write_integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
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
