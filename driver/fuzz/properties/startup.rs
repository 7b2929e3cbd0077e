//! Logins, SCRAM among them.

use bytes::BytesMut;
use pgdyno_driver::protocol::frames::{HEADER_BYTES, check_length};
use pgdyno_driver::protocol::startup::{Login, Startup};
use pgdyno_driver::security::Channel;
use postgres_protocol::message::backend::Message;

use super::message;

/// In a message of the server it stands for the client's nonce, which is another one each time.
const NONCE: &[u8] = b"@NONCE@";
const SASL_CONTINUE: &[u8] = &[0, 0, 0, 11];

/// Any answers lead to a session or to an error with a text; without proof of the password SCRAM never ends well.
pub fn check(data: &[u8]) {
    for channel in [Channel::Socket, Channel::Tls(Some(b"hash".to_vec()))] {
        log_in(data, channel);
    }
}

fn log_in(data: &[u8], channel: Channel) {
    let login = Login {
        user: "ann".into(),
        database: "shop".into(),
        password: Some("secret".into()),
        ..Login::default()
    };
    let mut out = BytesMut::new();
    let mut startup = Startup::begin(&login, channel, &mut out).unwrap();
    let mut inbox = BytesMut::from(data);
    let mut has_begun_scram = false;
    loop {
        out.clear();
        let message = match next(&mut inbox) {
            Ok(Some(message)) => message,
            Ok(None) => return,
            Err(error) => return assert!(!error.is_empty()),
        };
        has_begun_scram |= matches!(message, Message::AuthenticationSasl(_));
        match startup.advance(message, &mut out) {
            Ok(true) => return assert!(!has_begun_scram, "it was let in without a proof"),
            Ok(false) => name_nonce(&mut inbox, &out),
            Err(error) => return assert!(!error.message.is_empty()),
        }
    }
}

/// Takes the next message, as `connect` does.
fn next(inbox: &mut BytesMut) -> Result<Option<Message>, String> {
    if let Some(length) = inbox.get(1..HEADER_BYTES) {
        check_length(inbox[0], length).map_err(|error| error.message)?;
    }
    Message::parse(inbox).map_err(|error| error.to_string())
}

/// Puts the client's nonce into the message that waits, if that goes on with SCRAM.
fn name_nonce(inbox: &mut BytesMut, sent: &[u8]) {
    let Some(at) = find(sent, b"r=") else { return };
    let Some(length) = inbox.get(1..HEADER_BYTES).and_then(|length| check_length(inbox[0], length).ok())
    else {
        return;
    };
    let Some(body) = inbox.get(HEADER_BYTES..=length).filter(|body| body.starts_with(SASL_CONTINUE)) else {
        return;
    };
    let Some(place) = find(body, NONCE) else { return };
    let named = [&body[..place], &sent[at + 2..], &body[place + NONCE.len()..]].concat();
    let rest = inbox.split_off(1 + length);
    *inbox = BytesMut::from(&[message(b'R', &named), rest.to_vec()].concat()[..]);
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
