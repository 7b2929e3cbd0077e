//! Command tags and first columns.

use pgdyno_driver::connect::first_column;
use pgdyno_driver::protocol::answer::{affected, first_integer};

/// Any bytes have an answer; numbers that a server would write are read back.
pub fn check(data: &[u8]) {
    let rows = affected(data);
    assert_eq!(affected(format!("INSERT 0 {rows}\0").as_bytes()), rows);
    if let Some(number) = first_integer(data) {
        let text = number.to_string();
        let row = [&[0, 1][..], &(text.len() as u32).to_be_bytes(), text.as_bytes()].concat();
        assert_eq!(first_integer(&row), Some(number));
    }
    let _ = first_column(data);
}
