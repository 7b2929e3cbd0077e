//! Text representations of values. The server parses them by the parameter's type.

use std::io::Write;

use crate::random::Random;
use crate::workload::data_set::write_integer;

/// Writes an integer with a decimal point before its last `scale` digits.
pub(super) fn write_decimal(value: i64, scale: u32, out: &mut Vec<u8>) {
    if scale == 0 {
        return write_integer(value, out);
    }
    let unit = 10_u64.pow(scale);
    let (sign, size) = (if value < 0 { "-" } else { "" }, value.unsigned_abs());
    let width = scale as usize;
    // Writing to a vector cannot fail.
    let _ = write!(out, "{sign}{}.{:0width$}", size / unit, size % unit);
}

pub(super) fn write_letters(random: &mut Random, (least, most): (u32, u32), out: &mut Vec<u8>) {
    let length = random.between(i64::from(least), i64::from(most));
    out.extend((0..length).map(|_| b'a' + random.between(0, 25) as u8));
}

/// Writes a random UUID (version 4 of RFC 9562, 122 random bits).
pub(super) fn write_uuid(random: &mut Random, out: &mut Vec<u8>) {
    let high = random.bits() & !0xF000 | 0x4000;
    let low = random.bits() >> 2 | 1 << 63;
    let _ = write!(
        out,
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xFFFF,
        high & 0xFFFF,
        low >> 48,
        low & 0xFFFF_FFFF_FFFF
    );
}

/// Writes an array element, quoted.
pub(super) fn write_element(element: &[u8], (is_first, is_value): (bool, bool), out: &mut Vec<u8>) {
    if !is_first {
        out.push(b',');
    }
    if !is_value {
        return out.extend_from_slice(b"NULL");
    }
    out.push(b'"');
    for byte in element {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}
