//! One connection of the mock.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;

use super::{Asked, Behaviour, Reaction, error, message};

const READY: &[u8] = b"Z\0\0\0\x05I";

pub struct Peer<'a> {
    pub stream: UnixStream,
    connection: usize,
    behaviour: &'a Behaviour,
    seen: &'a Mutex<Vec<String>>,
    statements: HashMap<String, String>,
    bound: (String, Vec<String>),
    asked: usize,
    is_skipping: bool,
    is_closing: Option<Vec<u8>>,
}

impl<'a> Peer<'a> {
    pub fn new(
        stream: UnixStream,
        connection: usize,
        behaviour: &'a Behaviour,
        seen: &'a Mutex<Vec<String>>,
    ) -> Self {
        Self {
            stream,
            connection,
            behaviour,
            seen,
            statements: HashMap::new(),
            bound: Default::default(),
            asked: 0,
            is_skipping: false,
            is_closing: None,
        }
    }

    /// Serves until somebody closes the connection.
    pub fn serve(mut self) -> io::Result<()> {
        self.startup()?;
        loop {
            let (tag, body) = self.read()?;
            self.seen.lock().unwrap()[self.connection].push(tag as char);
            match tag {
                b'S' => self.ready()?,
                _ if self.is_skipping => {}
                b'P' => self.parse(&body)?,
                b'B' => self.bind(&body)?,
                b'D' => self.stream.write_all(&message(b'n', b""))?,
                b'E' => {
                    let (sql, arguments) = self.bound.clone();
                    self.execute(&sql, &arguments)?;
                }
                b'Q' => {
                    self.execute(&text(&body[..body.len() - 1]), &[])?;
                    self.ready()?;
                }
                _ => return Ok(()),
            }
        }
    }

    fn startup(&mut self) -> io::Result<()> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut parameters = vec![0; u32::from_be_bytes(length) as usize - 4];
        self.stream.read_exact(&mut parameters)?;
        let login = self.behaviour.login;
        login.demand(self)?;
        self.stream.write_all(&message(b'R', &[0; 4]))?;
        self.stream.write_all(&message(b'S', b"server_version\x0018.0 (mock)\0"))?;
        self.stream.write_all(&message(b'K', &[0; 8]))?;
        self.stream.write_all(READY)
    }

    /// Reads one message.
    pub fn read(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut header = [0; 5];
        self.stream.read_exact(&mut header)?;
        let mut body = vec![0; u32::from_be_bytes(header[1..].try_into().unwrap()) as usize - 4];
        self.stream.read_exact(&mut body)?;
        Ok((header[0], body))
    }

    fn ready(&mut self) -> io::Result<()> {
        self.is_skipping = false;
        self.stream.write_all(READY)?;
        match self.is_closing.take() {
            None => Ok(()),
            Some(bytes) => {
                self.stream.write_all(&bytes)?;
                Err(io::ErrorKind::ConnectionAborted.into())
            }
        }
    }

    fn parse(&mut self, body: &[u8]) -> io::Result<()> {
        if let Some(code) = self.behaviour.prepare_error
            && body.windows(8).any(|text| text == b"pgbench_")
        {
            self.is_skipping = true;
            return self.stream.write_all(&error("ERROR", code));
        }
        let mut parts = body.split(|byte| *byte == 0);
        let name = text(parts.next().unwrap());
        self.statements.insert(name, text(parts.next().unwrap()));
        self.stream.write_all(&message(b'1', b""))
    }

    fn bind(&mut self, body: &[u8]) -> io::Result<()> {
        let name = text(body[1..].split(|byte| *byte == 0).next().unwrap());
        let mut rest = &body[name.len() + 4..];
        let mut arguments = Vec::new();
        let count = u16::from_be_bytes(rest[..2].try_into().unwrap());
        rest = &rest[2..];
        for _ in 0..count {
            let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
            arguments.push(text(&rest[4..4 + length]));
            rest = &rest[4 + length..];
        }
        self.bound = (self.statements[&name].clone(), arguments);
        self.stream.write_all(&message(b'2', b""))
    }

    fn execute(&mut self, sql: &str, arguments: &[String]) -> io::Result<()> {
        if sql.contains("pg_try_advisory_lock") {
            let is_free = if (self.behaviour.is_lock_free)(self.connection) { b"1" } else { b"0" };
            self.stream.write_all(&message(b'D', &[b"\0\x01\0\0\0\x01", &is_free[..]].concat()))?;
            return self.stream.write_all(&message(b'C', b"SELECT 1\0"));
        }
        if sql == "ROLLBACK" {
            return self.stream.write_all(&message(b'C', b"ROLLBACK\0"));
        }
        let asked = Asked { connection: self.connection, number: self.asked, sql, arguments };
        self.asked += 1;
        match (self.behaviour.react)(&asked) {
            Reaction::Complete => self.stream.write_all(&message(b'C', b"UPDATE 1\0")),
            Reaction::Fail(code) => {
                self.is_skipping = true;
                self.stream.write_all(&error("ERROR", code))
            }
            Reaction::Prefix(bytes) => {
                self.stream.write_all(&bytes)?;
                self.stream.write_all(&message(b'C', b"UPDATE 1\0"))
            }
            Reaction::Bytes(bytes) => {
                self.stream.write_all(&bytes)?;
                loop {
                    self.read()?;
                }
            }
            Reaction::Endless(bytes) => loop {
                self.stream.write_all(&bytes)?;
            },
            Reaction::Close(bytes) => {
                self.stream.write_all(&bytes)?;
                Err(io::ErrorKind::ConnectionAborted.into())
            }
            Reaction::CloseWhenIdle(bytes) => {
                self.is_closing = Some(bytes);
                self.stream.write_all(&message(b'C', b"UPDATE 1\0"))
            }
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
