//! One session with a transaction under way, and whatever its server sends.

use pgdyno_driver::protocol::request::Mode;
use pgdyno_driver::session::Outcome;
use pgdyno_driver::workload::Next;

use super::fed::Fed;

const MODES: [Mode; 4] = [Mode::Simple, Mode::Extended, Mode::Prepared, Mode::Pipelined];

/// The first two bytes choose how statements travel and where reads end; the rest come from the server.
pub fn check(data: &[u8]) {
    let [mode, cut, stream @ ..] = data else { return };
    let mut fed = Fed::begin(MODES[usize::from(*mode) % MODES.len()]);
    for piece in stream.chunks(usize::from(*cut).max(1)) {
        match fed.feed(piece) {
            None => return,
            Some(Outcome::Pending) => {}
            Some(_) => assert_eq!(fed.begin_again().unwrap(), Next::Ready),
        }
    }
}
