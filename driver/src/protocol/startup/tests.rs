//! Logins against a server's messages, one by one.

use super::*;

const CLEARTEXT: &[u8] = &[0, 0, 0, 3];
const MD5: &[u8] = &[0, 0, 0, 5, 1, 2, 3, 4];
const OK: &[u8] = &[0; 4];
const SCRAM: &[u8] = b"\0\0\0\x0aSCRAM-SHA-256\0\0";
const SCRAM_OR_PLUS: &[u8] = b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
const NETWORK: Channel = Channel::Clear { is_wanted: false, is_loopback: false };
const CLEAR_BY_CHOICE: Channel = Channel::Clear { is_wanted: true, is_loopback: false };
const LOOPBACK: Channel = Channel::Clear { is_wanted: false, is_loopback: true };

fn message(tag: u8, body: &[u8]) -> Message {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    let mut bytes = BytesMut::from(&[&[tag], &length[..], body].concat()[..]);
    Message::parse(&mut bytes).unwrap().unwrap()
}

fn login(require_auth: &str, binding: Binding) -> Login {
    let methods =
        if require_auth.is_empty() { Methods::default() } else { Methods::parse(require_auth).unwrap() };
    Login { user: "ann".into(), password: Some("pencil".into()), methods, binding, ..Login::default() }
}

/// The answer to an authentication request. Nothing is sent if it is refused.
fn answer(login: &Login, channel: &Channel, request: &[u8]) -> Result<Vec<u8>> {
    let mut out = BytesMut::new();
    let mut startup = Startup::begin(login, channel.clone(), &mut out)?;
    out.clear();
    let advanced = startup.advance(message(b'R', request), &mut out);
    assert!(advanced.is_ok() || out.is_empty());
    advanced.map(|_| out.to_vec())
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|part| part == text)
}

#[test]
fn a_server_that_is_ready_before_authentication_is_refused() {
    let login = Login::default();
    let mut out = BytesMut::new();
    let mut startup = Startup::begin(&login, Channel::Socket, &mut out).unwrap();
    let error = startup.advance(message(b'Z', b"I"), &mut out).unwrap_err();
    assert_eq!(error.message, "the server sent ReadyForQuery before authentication was complete");
}

#[test]
fn no_password_is_sent_in_clear_text_over_a_network_unless_requested() {
    let anyhow = login("", Binding::Prefer);
    for (request, method) in [(CLEARTEXT, "password"), (MD5, "md5")] {
        let error = answer(&anyhow, &NETWORK, request).unwrap_err();
        assert_eq!(error.message, format!("the server requests authentication method {method} without TLS"));
        for channel in [Channel::Socket, Channel::Tls(None), CLEAR_BY_CHOICE, LOOPBACK] {
            assert_eq!(answer(&anyhow, &channel, request).unwrap()[0], b'p', "{channel:?}");
        }
    }
    assert!(answer(&anyhow, &NETWORK, SCRAM).is_ok());
}

#[test]
fn over_the_loopback_it_is_noted() {
    let login = login("", Binding::Prefer);
    for (channel, expected) in [(LOOPBACK, true), (CLEAR_BY_CHOICE, false)] {
        let mut out = BytesMut::new();
        let mut startup = Startup::begin(&login, channel, &mut out).unwrap();
        startup.advance(message(b'R', CLEARTEXT), &mut out).unwrap();
        assert_eq!(startup.note.is_some(), expected);
    }
}

#[test]
fn only_methods_that_require_auth_names_are_accepted() {
    let demanding = login("scram-sha-256", Binding::Prefer);
    for (request, expected) in [
        (CLEARTEXT, "the server requests authentication method password"),
        (MD5, "the server requests authentication method md5"),
        (OK, "the server accepted the client without a password"),
    ] {
        let error = answer(&demanding, &Channel::Socket, request).unwrap_err();
        assert_eq!(error.message, expected);
        assert_eq!(error.detail.unwrap(), "require_auth accepts scram-sha-256");
    }
    assert!(answer(&demanding, &Channel::Socket, SCRAM).is_ok());
    let error = answer(&login("!scram-sha-256", Binding::Prefer), &Channel::Socket, SCRAM).unwrap_err();
    assert_eq!(error.message, "the server requests authentication method scram-sha-256");
}

#[test]
fn scram_is_bound_to_tls_as_libpq_does_it() {
    let tls = Channel::Tls(Some(b"hash".to_vec()));
    for (channel, binding, offer, mechanism, header) in [
        (&tls, Binding::Prefer, SCRAM_OR_PLUS, "SCRAM-SHA-256-PLUS", "p=tls-server-end-point,,n="),
        (&tls, Binding::Require, SCRAM_OR_PLUS, "SCRAM-SHA-256-PLUS", "p=tls-server-end-point,,n="),
        (&tls, Binding::Prefer, SCRAM, "SCRAM-SHA-256", "y,,n="),
        (&tls, Binding::Disable, SCRAM_OR_PLUS, "SCRAM-SHA-256", "n,,n="),
        (&Channel::Tls(None), Binding::Prefer, SCRAM_OR_PLUS, "SCRAM-SHA-256", "n,,n="),
        (&Channel::Socket, Binding::Prefer, SCRAM, "SCRAM-SHA-256", "n,,n="),
    ] {
        let sent = answer(&login("", binding), channel, offer).unwrap();
        assert!(sent[5..].starts_with(format!("{mechanism}\0").as_bytes()), "{binding:?} {sent:?}");
        assert!(contains(&sent, header.as_bytes()), "{binding:?} {channel:?}");
    }
}

#[test]
fn without_the_channel_binding_that_is_required_nothing_is_sent() {
    let tls = Channel::Tls(Some(b"hash".to_vec()));
    for (channel, request, detail) in [
        (&tls, CLEARTEXT, "authentication method password has no channel binding"),
        (&tls, MD5, "authentication method md5 has no channel binding"),
        (&tls, OK, "authentication method none has no channel binding"),
        (&tls, SCRAM, "the server does not offer it"),
        (&Channel::Tls(None), SCRAM_OR_PLUS, "the certificate's signature algorithm has no single hash"),
        (&Channel::Socket, SCRAM, "the connection has no TLS"),
    ] {
        let error = answer(&login("", Binding::Require), channel, request).unwrap_err();
        assert_eq!(error.message, "channel_binding=require cannot be fulfilled");
        assert_eq!(error.detail.unwrap(), detail);
    }
}

#[test]
fn a_challenge_that_would_take_minutes_is_refused() {
    let login = login("", Binding::Prefer);
    for (count, is_accepted) in [("100000", true), ("100001", false), ("4294967295", false), ("9e9", false)] {
        let mut out = BytesMut::new();
        let mut startup = Startup::begin(&login, Channel::Socket, &mut out).unwrap();
        out.clear();
        startup.advance(message(b'R', SCRAM), &mut out).unwrap();
        let sent = String::from_utf8_lossy(&out).into_owned();
        // A nonce may itself contain "r=", but no comma.
        let nonce = sent.split_once(",r=").unwrap().1;
        let challenge = format!("r={nonce}more,s=W22ZaJ0SNY7soEsUjxjfHg==,i={count}");
        let body = [b"\0\0\0\x0b", challenge.as_bytes()].concat();
        let answered = startup.advance(message(b'R', &body), &mut out);
        assert_eq!(answered.is_ok(), is_accepted, "{count}: {answered:?}");
        if let Err(error) = answered {
            assert_eq!(error.message, "the server requests more than 100000 SCRAM iterations");
            assert_eq!(error.detail.unwrap(), format!("it requests {count}"));
        }
    }
}
