//! Reads row counts and single values from answers to statements. Accepts any bytes.

/// Reads the row count of a command tag (`INSERT 0 50`, `SELECT 10`); 0 if it has none.
pub fn affected(tag: &[u8]) -> u64 {
    let text = tag.strip_suffix(b"\0").unwrap_or(tag);
    let digits = text.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Reads the first column of a row as an integer; `None` if it is NULL or no integer.
pub fn first_integer(row: &[u8]) -> Option<i64> {
    std::str::from_utf8(value_of(row, 0)?).ok()?.parse().ok()
}

/// Reads a column's value from a row; `None` if it is NULL or the row has no such column.
pub fn value_of(row: &[u8], column: usize) -> Option<&[u8]> {
    let mut rest = row.get(2..)?;
    for _ in 0..column {
        let (length, value) = rest.split_at_checked(4)?;
        rest = value.get(length_of(length).unwrap_or_default()..)?;
    }
    let (length, value) = rest.split_at_checked(4)?;
    value.get(..length_of(length)?)
}

/// Reads the length of a value; `None` for NULL.
fn length_of(bytes: &[u8]) -> Option<usize> {
    usize::try_from(i32::from_be_bytes(bytes.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_tags_name_their_rows() {
        for (tag, rows) in [("INSERT 0 50\0", 50), ("DELETE 7\0", 7), ("SELECT 100\0", 100), ("BEGIN\0", 0)] {
            assert_eq!(affected(tag.as_bytes()), rows, "{tag}");
        }
    }

    #[test]
    fn the_first_column_of_a_row_is_read_or_absent() {
        assert_eq!(first_integer(b"\0\x01\0\0\0\x0242"), Some(42));
        assert_eq!(first_integer(b"\0\x01\xff\xff\xff\xff"), None);
        assert_eq!(first_integer(b"\0"), None);
    }

    #[test]
    fn a_column_is_found_after_others_and_null() {
        let row = b"\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\x01c";
        assert_eq!([0, 1, 2, 3].map(|at| value_of(row, at)), [Some(&b"ab"[..]), None, Some(b"c"), None]);
        assert_eq!(value_of(b"\0\x01\0\0\0\x09ab", 0), None);
        assert_eq!(value_of(b"", 2), None);
    }
}
