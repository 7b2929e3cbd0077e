//! What holds for any bytes, by reader: no panic, no endless loop, and what was written is read back.
//!
//! `driver/tests/corpora.rs` checks it on the kept inputs, `fuzz_targets/` on new ones.

#[path = "../../tests/fed/mod.rs"]
mod fed;

pub mod answer;
pub mod conninfo;
pub mod end_point;
pub mod frames;
pub mod job;
pub mod server_error;
pub mod session;
pub mod startup;
pub mod workload;

/// Writes one message of the protocol.
pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[tag], &length[..], body].concat()
}
