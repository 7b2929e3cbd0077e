//! The server's side of a login of role `ann` with password `pencil`.

use std::io::{self, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::peer::Peer;
use super::{error, message, notices};

/// md5(md5("pencil" "ann") 01 02 03 04), computed with Python's hashlib.
const MD5_ANSWER: &[u8] = b"md57a54f810f22603a6e57c5628653701a4\0";
/// Salt and iterations of the example in RFC 7677, section 3.
const SALT: &str = "W22ZaJ0SNY7soEsUjxjfHg==";
/// Computed with Python's hashlib and hmac from "pencil", that salt and 4096 iterations.
const STORED_KEY: &str = "a7c4ba206a477b591729f2fa26e331ac8a2821650a42a20e487bebc089148fef";
const SERVER_KEY: &str = "2dcf4f0dc2a3eec9af853cb4c72dcfb2301472175919e5250a049c90134660ed";

/// What the mock wants before it lets a client in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    Trust,
    Cleartext,
    Md5,
    Scram,
    /// As `Scram`, but the server does not know the password itself.
    ForgedScram,
    /// As `Scram`, but the server lets the client in instead of proving that it knows the password.
    UnfinishedScram,
    /// As `Scram`, but the server lets the client in without having looked at its proof.
    SkippedScram,
    /// Never answers.
    Silent,
    /// Sends notices without end.
    Talkative,
    /// Asks for GSSAPI.
    Gss,
    /// Sends a message of 2 GiB.
    Oversized,
    /// Lets nobody in.
    Refuse,
}

impl Login {
    pub fn demand(self, peer: &mut Peer) -> io::Result<()> {
        match self {
            Self::Trust => Ok(()),
            Self::Cleartext => ask(peer, &[0, 0, 0, 3], b"pencil\0"),
            Self::Md5 => ask(peer, &[0, 0, 0, 5, 1, 2, 3, 4], MD5_ANSWER),
            Self::Scram | Self::ForgedScram | Self::UnfinishedScram => scram(peer, self),
            Self::SkippedScram => begin_scram(peer).map(|_| ()),
            Self::Silent => peer.read().map(|_| ()),
            Self::Talkative => loop {
                peer.stream.write_all(&notices())?;
            },
            Self::Gss => ask(peer, &[0, 0, 0, 7], b""),
            Self::Oversized => {
                peer.stream.write_all(b"R\x7f\xff\xff\xff")?;
                peer.read().map(|_| ())
            }
            Self::Refuse => refuse(peer),
        }
    }
}

fn refuse(peer: &mut Peer) -> io::Result<()> {
    peer.stream.write_all(&error("FATAL", "28P01"))?;
    Err(io::ErrorKind::PermissionDenied.into())
}

fn ask(peer: &mut Peer, request: &[u8], expected: &[u8]) -> io::Result<()> {
    peer.stream.write_all(&message(b'R', request))?;
    if peer.read()?.1 == expected { Ok(()) } else { refuse(peer) }
}

/// Returns the client's first message.
fn begin_scram(peer: &mut Peer) -> io::Result<String> {
    peer.stream.write_all(&message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"))?;
    Ok(String::from_utf8(peer.read()?.1).unwrap())
}

/// RFC 5802, section 3.
fn scram(peer: &mut Peer, login: Login) -> io::Result<()> {
    let first = begin_scram(peer)?;
    let bare = &first[first.find("n=").unwrap()..];
    let server_first = format!("r={}server,s={SALT},i=4096", bare.split_once("r=").unwrap().1);
    peer.stream.write_all(&message(b'R', &[b"\0\0\0\x0b", server_first.as_bytes()].concat()))?;
    let last = String::from_utf8(peer.read()?.1).unwrap();
    let (without_proof, proof) = last.split_once(",p=").unwrap();
    let signed = format!("{bare},{server_first},{without_proof}");
    let stored = hex(STORED_KEY);
    let client_key: Vec<u8> = BASE64_STANDARD
        .decode(proof)
        .unwrap()
        .iter()
        .zip(hmac(&stored, signed.as_bytes()))
        .map(|(proof, signature)| proof ^ signature)
        .collect();
    if Sha256::digest(client_key)[..] != stored[..] {
        return refuse(peer);
    }
    if login == Login::UnfinishedScram {
        return Ok(());
    }
    let key = if login == Login::Scram { hex(SERVER_KEY) } else { vec![0; 32] };
    let verifier = format!("v={}", BASE64_STANDARD.encode(hmac(&key, signed.as_bytes())));
    peer.stream.write_all(&message(b'R', &[b"\0\0\0\x0c", verifier.as_bytes()].concat()))
}

fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    Hmac::<Sha256>::new_from_slice(key).unwrap().chain_update(text).finalize().into_bytes().to_vec()
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}
