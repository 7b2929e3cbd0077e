//! Schemas of clients that have tables of their own.

/// The name of a client's schema; the first client's number is 1.
pub fn of_client(number: u64) -> String {
    format!("client_{number}")
}
