//! A session's connection, if it has one, with its output buffer. Never blocks.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};

use crate::error::{Error, Result};
use crate::transport::Transport;

/// A connection that may be lost and replaced.
#[derive(Default)]
pub struct Wire {
    transport: Option<Transport>,
    /// Bytes to write are appended here.
    pub outbox: Vec<u8>,
    written: usize,
}

/// The result of a read.
pub struct Arrived {
    /// Number of bytes, at the beginning of the buffer.
    pub bytes: usize,
    /// Whether no more bytes are available now.
    pub is_all: bool,
}

impl Wire {
    /// Replaces the connection, makes it non-blocking, and discards unwritten bytes.
    pub fn connect(&mut self, transport: Transport) -> Result<()> {
        transport
            .set_nonblocking()
            .map_err(|error| Error::new(format!("could not make a socket non-blocking: {error}")))?;
        *self = Self { transport: Some(transport), ..Self::default() };
        Ok(())
    }

    /// Drops the connection.
    pub fn disconnect(&mut self) {
        self.transport = None;
    }

    /// The socket, if it is connected.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.transport.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Whether there are unwritten bytes.
    pub fn has_unwritten(&self) -> bool {
        self.written < self.outbox.len() || self.transport.as_ref().is_some_and(Transport::has_unsent)
    }

    /// Writes unwritten bytes until the socket would block.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(transport) = &mut self.transport else { return Ok(()) };
        while self.written < self.outbox.len() {
            match transport.write(&self.outbox[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.outbox.clear();
        self.written = 0;
        match transport.flush() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// Reads all received bytes of a lost connection.
    pub fn rest(&mut self) -> Vec<u8> {
        self.transport.as_mut().map(Transport::rest).unwrap_or_default()
    }

    /// Reads received bytes; `None` if there are none. The end of the stream is an error.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<Arrived>> {
        let Some(transport) = &mut self.transport else { return Ok(None) };
        loop {
            return match transport.read(buffer) {
                Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => {
                    let is_all = bytes < buffer.len() && transport.is_emptied_by_short_read();
                    Ok(Some(Arrived { bytes, is_all }))
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
        }
    }
}
