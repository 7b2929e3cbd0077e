//! Certificates of servers.

use pgdyno_driver::protocol::end_point::end_point;

/// Any bytes have a hash of one of three lengths, or none.
pub fn check(data: &[u8]) {
    if let Some(hash) = end_point(data) {
        assert!([32, 48, 64].contains(&hash.len()));
    }
}
