//! One session fed with bytes: any bytes, and good ones cut anywhere.

mod fed;

use std::io::{ErrorKind, Write};
use std::net::Shutdown;

use fed::Fed;
use pgdyno_driver::protocol::request::Mode;
use pgdyno_driver::session::Outcome;
use pgdyno_driver::workload::Next;
use proptest::prelude::*;

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[tag], &length[..], body].concat()
}

fn an_answer() -> Vec<u8> {
    let row = message(b'D', b"\0\x01\0\0\0\x0242");
    [message(b'2', b""), row, message(b'C', b"SELECT 1\0"), message(b'Z', b"T")].concat()
}

const MODES: [Mode; 4] = [Mode::Simple, Mode::Extended, Mode::Prepared, Mode::Pipelined];

#[test]
fn answers_may_come_byte_by_byte() {
    for mode in [Mode::Simple, Mode::Extended, Mode::Prepared] {
        let mut fed = Fed::begin(mode);
        let failure = [message(b'E', b"VERROR\0C40001\0Mconflict\0\0"), message(b'Z', b"E")].concat();
        let rolled_back = [message(b'C', b"ROLLBACK\0"), message(b'Z', b"I")].concat();
        let answers = [an_answer(), failure, rolled_back, an_answer(), an_answer()].concat();
        let (last, others) = answers.split_last().unwrap();
        for byte in others {
            assert_eq!(fed.feed(&[*byte]), Some(Outcome::Pending), "{mode:?}");
        }
        assert_eq!(fed.feed(&[*last]), Some(Outcome::Committed), "{mode:?}");
        assert_eq!((fed.counts.retries["40001"], fed.counts.statements["read"].count()), (1, 3), "{mode:?}");
        assert_eq!(fed.counts.rows, 2, "{mode:?}: a row that was rolled back counts");
    }
}

#[test]
fn a_long_answer_is_interrupted_so_that_its_limit_can_be_looked_at() {
    let mut fed = Fed::begin(Mode::Prepared);
    let notices = message(b'N', b"SNOTICE\0Mstill here\0\0").repeat(2000);
    assert_eq!(fed.feed(&notices), Some(Outcome::Unread));
    while fed.feed(b"") == Some(Outcome::Unread) {}
    assert_eq!(fed.feed(&an_answer()), Some(Outcome::Pending));
    assert_eq!(fed.feed(&an_answer()), Some(Outcome::Committed));
}

#[test]
fn a_failed_write_does_not_hide_the_error_with_which_the_server_closed_the_connection() {
    let farewell = message(b'E', b"VFATAL\0C57P01\0Mgoing\0\0");
    for (bytes, code) in [
        (farewell.clone(), Some("57P01")),
        ([message(b'N', b"SNOTICE\0Mstill here\0\0").repeat(300), farewell.clone()].concat(), Some("57P01")),
        ([farewell, b"no message".to_vec()].concat(), Some("57P01")),
        (message(b'E', b"VERROR\0C40001\0Mconflict\0\0"), None),
        (Vec::new(), None),
    ] {
        let mut fed = Fed::begin(Mode::Prepared);
        assert_eq!(fed.feed(&an_answer()), Some(Outcome::Pending));
        assert_eq!(fed.feed(&an_answer()), Some(Outcome::Committed));
        fed.server.write_all(&bytes).unwrap();
        fed.server.shutdown(Shutdown::Both).unwrap();
        assert_eq!(fed.begin_again().unwrap_err().kind(), ErrorKind::BrokenPipe);
        let farewell = fed.session.take_farewell().map(|farewell| farewell.code);
        assert_eq!(farewell.as_deref(), code, "{}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn an_error_of_a_statement_does_not_hide_the_one_that_ends_the_connection() {
    let conflict = message(b'E', b"VERROR\0C40001\0Mconflict\0\0");
    let rolling_back = [conflict.clone(), message(b'Z', b"E")].concat();
    for (mode, before) in [(Mode::Prepared, rolling_back), (Mode::Pipelined, conflict)] {
        let mut fed = Fed::begin(mode);
        assert_eq!(fed.feed(&before), Some(Outcome::Pending));
        assert_eq!(fed.feed(&message(b'E', b"VFATAL\0C57P01\0Mgoing\0\0")), Some(Outcome::Pending));
        assert_eq!(fed.session.take_farewell().unwrap().code, "57P01", "{mode:?}");
    }
}

/// Something like a message of a server: a likely type, a body that may make sense.
fn a_message() -> impl Strategy<Value = Vec<u8>> {
    let body = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..24),
        Just(b"SELECT 1\0".to_vec()),
        Just(b"\0\x01\0\0\0\x0242".to_vec()),
        Just(b"\0\x01\x7f\xff\xff\xff42".to_vec()),
        Just(b"VERROR\0C40001\0Mconflict\0\0".to_vec()),
        Just(b"VFATAL\0C57P01\0Mgoing\0\0".to_vec()),
        Just(b"I".to_vec()),
    ];
    let tag = prop_oneof![4 => proptest::sample::select(b"CDEZ12TnNSAI".to_vec()), 1 => any::<u8>()];
    (tag, body).prop_map(|(tag, body)| message(tag, &body))
}

proptest! {
    #[test]
    fn no_sequence_of_bytes_panics_or_is_waited_for(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for mode in MODES {
            let _ = Fed::begin(mode).feed(&bytes);
        }
    }

    #[test]
    fn no_sequence_of_messages_panics_or_is_waited_for(
        messages in proptest::collection::vec(a_message(), 0..40),
        cut in 1usize..40,
    ) {
        for mode in MODES {
            let mut fed = Fed::begin(mode);
            for bytes in messages.concat().chunks(cut) {
                match fed.feed(bytes) {
                    None => break,
                    Some(Outcome::Pending) => {}
                    Some(_) => prop_assert_eq!(fed.begin_again().unwrap(), Next::Ready),
                }
            }
        }
    }
}
