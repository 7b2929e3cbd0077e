//! Reads what is needed of a statement's answers: rows affected, and one value. Whatever the bytes are.

/// Reads how many rows a command tag (`INSERT 0 50`, `SELECT 10`) names; 0 if it names none.
pub fn affected(tag: &[u8]) -> u64 {
    let text = tag.strip_suffix(b"\0").unwrap_or(tag);
    let digits = text.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Reads the first column of a row as an integer; `None` if it is NULL or none.
pub fn first_integer(row: &[u8]) -> Option<i64> {
    let length = i32::from_be_bytes(row.get(2..6)?.try_into().ok()?);
    let value = row.get(6..6 + usize::try_from(length).ok()?)?;
    std::str::from_utf8(value).ok()?.parse().ok()
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
}
