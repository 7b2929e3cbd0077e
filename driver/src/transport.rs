//! A connected byte stream: a Unix socket, or TCP with or without TLS.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};

use crate::protocol::end_point::end_point;
use crate::security::Channel;

/// Limit on the bytes read from a lost connection: more than a socket buffers.
const MAX_REST_BYTES: u64 = 8 << 20;

/// A connection to a server.
pub enum Transport {
    /// A Unix socket.
    Unix(UnixStream),
    /// TCP in clear text.
    Tcp(TcpStream),
    /// TCP with TLS.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Transport {
    /// Whether a read that did not fill its buffer has emptied the socket: true except with TLS, which
    /// buffers.
    pub fn is_emptied_by_short_read(&self) -> bool {
        !matches!(self, Self::Tls(_))
    }

    /// Whether written bytes are still unsent: TLS has its own buffer.
    pub fn has_unsent(&self) -> bool {
        matches!(self, Self::Tls(stream) if stream.conn.wants_write())
    }

    /// The security of a login on this connection.
    pub fn channel(&self, is_clear_text_wanted: bool) -> Channel {
        match self {
            Self::Unix(_) => Channel::Socket,
            Self::Tls(stream) => {
                let certificate = stream.conn.peer_certificates().and_then(<[_]>::first);
                Channel::Tls(certificate.and_then(|certificate| end_point(certificate)))
            }
            Self::Tcp(stream) => Channel::Clear {
                is_wanted: is_clear_text_wanted,
                is_loopback: stream
                    .peer_addr()
                    .is_ok_and(|address| address.ip().to_canonical().is_loopback()),
            },
        }
    }

    /// Sets the timeouts of reads and writes.
    pub fn set_timeouts(&self, read: Duration, write: Duration) -> io::Result<()> {
        match self {
            Self::Unix(stream) => {
                stream.set_read_timeout(Some(read))?;
                stream.set_write_timeout(Some(write))
            }
            Self::Tcp(stream) => set_tcp_timeouts(stream, read, write),
            Self::Tls(stream) => set_tcp_timeouts(&stream.sock, read, write),
        }
    }

    /// Makes the stream non-blocking, for the event loop.
    pub fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_nonblocking(true),
            Self::Tcp(stream) => stream.set_nonblocking(true),
            Self::Tls(stream) => stream.sock.set_nonblocking(true),
        }
    }

    /// Reads all received bytes of a connection that can no longer be written to. It is not usable
    /// afterwards.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let read = self.set_nonblocking().and_then(|()| match self {
            Self::Unix(stream) => stream.take(MAX_REST_BYTES).read_to_end(&mut rest),
            Self::Tcp(stream) => stream.take(MAX_REST_BYTES).read_to_end(&mut rest),
            Self::Tls(stream) => Unwritable(stream).take(MAX_REST_BYTES).read_to_end(&mut rest),
        });
        drop(read); // the connection is lost already: a read error does not matter
        rest
    }
}

/// Reads from TLS without writing: `StreamOwned` first writes its buffer, and does not read if that fails.
struct Unwritable<'a>(&'a mut StreamOwned<ClientConnection, TcpStream>);

impl Read for Unwritable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let StreamOwned { conn, sock } = &mut *self.0;
        loop {
            match conn.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            if conn.read_tls(sock)? == 0 {
                return Ok(0);
            }
            conn.process_new_packets().map_err(io::Error::other)?;
        }
    }
}

fn set_tcp_timeouts(stream: &TcpStream, read: Duration, write: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(read))?;
    stream.set_write_timeout(Some(write))
}

impl AsRawFd for Transport {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Unix(stream) => stream.as_raw_fd(),
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Tls(stream) => stream.sock.as_raw_fd(),
        }
    }
}

impl Read for Transport {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Transport {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(buffer),
            Self::Tcp(stream) => stream.write(buffer),
            Self::Tls(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.flush(),
            Self::Tcp(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
