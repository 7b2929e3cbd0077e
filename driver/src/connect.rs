//! Opens connections and logs in, with a time limit on each answer. A connection then either runs statements
//! here (loading, preparing) or moves to the event loop.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use postgres_protocol::message::backend::Message;

use crate::conninfo::ConnInfo;
use crate::error::{Error, Result};
use crate::protocol::frames::{HEADER_BYTES, check_length};
use crate::protocol::request::{write_parse, write_sync, write_text};
use crate::protocol::server_error::ServerError;
use crate::protocol::startup::Startup;
use crate::security::SslMode;
use crate::terminal;
use crate::tls;
use crate::transport::Transport;
use crate::workload::{Statement, StatementId, StatementKind};

const READ_BYTES: usize = 16 << 10;
/// Statements prepared per batch: their answers, not read while sending, fit into a socket's buffer.
const PREPARED_AT_ONCE: usize = 1000;
/// Time limit on index builds and table loads: no workload's statement takes longer.
pub const LONGEST_STATEMENT: Duration = Duration::from_secs(6 * 3600);
/// Time limit on sending, shorter than that on answers: a server copying rows only stores what it reads.
const SEND_LIMIT: Duration = Duration::from_secs(120);
/// Pause between attempts to connect to a Unix socket with a full listen queue.
const QUEUE_PAUSE: Duration = Duration::from_millis(5);

/// An idle connection after login.
pub struct Connection {
    /// Its stream, in blocking mode.
    pub transport: Transport,
    /// The reported `server_version`.
    pub server_version: String,
    /// The backend's process id.
    pub backend_pid: i32,
    /// A note on the login's security.
    pub note: Option<String>,
    place: String,
    inbox: BytesMut,
    answer_limit: Duration,
    /// Deadline of the current answer. Messages do not extend it: a server could send them without end.
    deadline: Instant,
}

impl Connection {
    /// Connects and logs in. `connect_timeout` limits the connection, the login and each later answer.
    pub fn open(info: &ConnInfo) -> Result<Self> {
        let transport = open_transport(info)?;
        let channel = transport.channel(info.ssl_mode == Some(SslMode::Disable));
        let mut connection = Self {
            transport,
            server_version: String::new(),
            backend_pid: 0,
            note: None,
            place: info.place(),
            inbox: BytesMut::new(),
            answer_limit: info.connect_timeout,
            deadline: Instant::now() + info.connect_timeout,
        };
        let mut out = BytesMut::new();
        let mut startup = Startup::begin(&info.login, channel, &mut out)?;
        loop {
            connection.send(&out)?;
            out.clear();
            let message = connection.receive()?;
            if startup.advance(message, &mut out)? {
                connection.server_version = startup.server_version;
                connection.backend_pid = startup.backend_pid;
                connection.note = startup.note;
                if startup.allows_any_bytes {
                    // Otherwise the server refuses to send a row with bytes that are not UTF-8.
                    connection.execute("SET client_encoding = 'SQL_ASCII'")?;
                }
                return Ok(connection);
            }
        }
    }

    /// Prints the note on the login's security, if any, to standard error.
    pub fn print_note(&self) {
        if let Some(note) = &self.note {
            terminal::print_stderr(&format_args!("note: {}: {note}", self.place));
        }
    }

    /// Sets the time limit on the answer to each following statement. Keepalive still detects a lost server.
    pub fn set_answer_limit(&mut self, limit: Duration) -> Result<()> {
        self.answer_limit = limit;
        self.transport.set_timeouts(limit, limit.min(SEND_LIMIT)).map_err(|error| self.lost(&error))
    }

    /// Prepares a role's statements in `used`, each under its index, except unprepared ones.
    pub fn prepare(&mut self, statements: &[Statement], used: Range<StatementId>) -> Result<()> {
        let numbered: Vec<_> = used.clone().zip(&statements[used]).collect();
        for some in numbered.chunks(PREPARED_AT_ONCE) {
            let mut out = Vec::new();
            let parsed = some.iter().filter(|(_, one)| one.kind == StatementKind::Prepared);
            for (index, statement) in parsed.clone() {
                write_parse(&mut out, *index, statement);
            }
            write_sync(&mut out);
            self.request(&out)?;
            let done = Cell::new(0);
            self.until_ready(
                |error| {
                    let failed = parsed.clone().nth(done.get()).map_or("no statement", |(_, one)| one.name);
                    error.while_using_tables(&format!("prepare {failed}"))
                },
                |message| done.set(done.get() + usize::from(matches!(message, Message::ParseComplete))),
            )?;
        }
        Ok(())
    }

    /// Reads all received messages and returns the stream, for the event loop.
    pub fn into_transport(mut self) -> Result<Transport> {
        while !self.inbox.is_empty() {
            if let Message::ErrorResponse(body) = self.receive()? {
                return Err(ServerError::of(&body).while_doing(&format!("stay connected to {}", self.place)));
            }
        }
        Ok(self.transport)
    }

    /// Runs a simple query and returns the first column of its first row.
    pub fn execute(&mut self, sql: &str) -> Result<Option<String>> {
        let mut out = Vec::new();
        write_text(&mut out, sql);
        self.request(&out)?;
        let mut value = None;
        let doing = format!("run \"{}\"", shortened(sql));
        self.until_ready(
            |error| error.while_doing(&doing),
            |message| {
                if let Message::DataRow(row) = message {
                    value = value.take().or_else(|| first_column(row.buffer()));
                }
            },
        )?;
        Ok(value)
    }

    /// Sends rows to a `COPY … FROM STDIN`. `next` appends a chunk and returns false after the last one.
    pub fn copy_in(&mut self, sql: &str, mut next: impl FnMut(&mut Vec<u8>) -> bool) -> Result<()> {
        let doing = format!("run \"{}\"", shortened(sql));
        let mut out = Vec::new();
        write_text(&mut out, sql);
        self.request(&out)?;
        loop {
            match self.receive()? {
                Message::CopyInResponse(_) => break,
                Message::NoticeResponse(_) | Message::ParameterStatus(_) => {}
                Message::ErrorResponse(body) => return Err(ServerError::of(&body).while_doing(&doing)),
                _ => return Err(Error::new(format!("could not {doing}: the server did not start COPY"))),
            }
        }
        loop {
            out.clear();
            out.extend_from_slice(&[b'd', 0, 0, 0, 0]);
            let is_more = next(&mut out);
            let length = (out.len() - 1) as u32;
            out[1..5].copy_from_slice(&length.to_be_bytes());
            if length > 4 {
                self.send(&out)?;
            }
            if !is_more {
                break;
            }
        }
        self.request(b"c\0\0\0\x04")?;
        self.until_ready(|error| error.while_doing(&doing), |_| {})
    }

    /// Takes messages until `ReadyForQuery` or the end of the connection. Returns the first error.
    fn until_ready(
        &mut self,
        explain: impl Fn(ServerError) -> Error,
        mut take: impl FnMut(&Message),
    ) -> Result<()> {
        let mut failed = None;
        loop {
            match self.receive() {
                Ok(Message::ReadyForQuery(_)) => return failed.map_or(Ok(()), Err),
                Ok(Message::ErrorResponse(body)) => {
                    failed = failed.or_else(|| Some(explain(ServerError::of(&body))));
                }
                Ok(message) => take(&message),
                // A server sends the reason before it closes the connection.
                Err(lost) => return Err(failed.unwrap_or(lost)),
            }
        }
    }

    /// Sends a request and starts the time limit on its answer.
    fn request(&mut self, bytes: &[u8]) -> Result<()> {
        self.deadline = Instant::now() + self.answer_limit;
        self.send(bytes)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let sent = self.transport.write_all(bytes).and_then(|()| self.transport.flush());
        sent.map_err(|error| self.unsent(&error))
    }

    /// The error for a failed send: the server's, if it sent one before closing the connection.
    fn unsent(&mut self, why: &io::Error) -> Error {
        self.inbox.extend_from_slice(&self.transport.rest());
        while let Ok(Some(message)) = self.arrived() {
            if let Message::ErrorResponse(body) = message {
                return ServerError::of(&body).while_doing(&format!("communicate with {}", self.place));
            }
        }
        self.lost(why)
    }

    /// Takes the next message if it is complete.
    fn arrived(&mut self) -> Result<Option<Message>> {
        if let Some(length) = self.inbox.get(1..HEADER_BYTES) {
            // Before the parser allocates memory for it.
            check_length(self.inbox[0], length)?;
        }
        Message::parse(&mut self.inbox).map_err(|error| {
            Error::new(format!("{} does not use PostgreSQL's protocol", self.place)).detail(error.to_string())
        })
    }

    fn receive(&mut self) -> Result<Message> {
        loop {
            if let Some(message) = self.arrived()? {
                return Ok(message);
            }
            if Instant::now() >= self.deadline {
                return Err(self.lost(&io::ErrorKind::TimedOut.into()));
            }
            let mut buffer = [0; READ_BYTES];
            match self.transport.read(&mut buffer) {
                Ok(0) => return Err(self.lost(&io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => self.inbox.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lost(&error)),
            }
        }
    }

    fn lost(&self, error: &io::Error) -> Error {
        let why = match error.kind() {
            io::ErrorKind::UnexpectedEof => "the server closed the connection".into(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "the server did not answer in time".into(),
            _ => error.to_string(),
        };
        Error::new(format!("could not communicate with {}: {why}", self.place))
            .hint("check that the server is running; see its log for the reason for closed connections")
    }
}

fn open_transport(info: &ConnInfo) -> Result<Transport> {
    let transport = if let Some(path) = info.socket_path() {
        Transport::Unix(open_unix(&path, info.connect_timeout).map_err(|error| unreachable(info, &error))?)
    } else {
        let stream = open_tcp(info).map_err(|error| unreachable(info, &error))?;
        match info.ssl_mode {
            None | Some(SslMode::Disable) => Transport::Tcp(stream),
            Some(_) => tls::wrap(stream, info)?,
        }
    };
    transport
        .set_timeouts(info.connect_timeout, info.connect_timeout)
        .map_err(|error| unreachable(info, &error))?;
    Ok(transport)
}

/// Connects without blocking: with a full listen queue, a blocking connect has no time limit.
fn open_unix(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let deadline = Instant::now() + limit;
    loop {
        match mio::net::UnixStream::connect(path) {
            Ok(stream) => {
                let stream = UnixStream::from(stream);
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(_) if Instant::now() >= deadline => {
                let why = format!("its listen queue was full for {:.0} s", limit.as_secs_f64());
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            Err(_) => std::thread::sleep(QUEUE_PAUSE),
        }
    }
}

fn open_tcp(info: &ConnInfo) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let addresses: Vec<SocketAddr> = match info.host_address {
        Some(address) => vec![(address, info.port).into()],
        None => (info.host.as_str(), info.port).to_socket_addrs()?.collect(),
    };
    for address in addresses {
        match TcpStream::connect_timeout(&address, info.connect_timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                keep_alive(&stream)?;
                stream.set_read_timeout(Some(info.connect_timeout))?;
                stream.set_write_timeout(Some(info.connect_timeout))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Enables keepalive: a lost server host is detected within two minutes, whatever the answer limit.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    let options = [
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 60),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 10),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 6),
    ];
    for (level, name, value) in options {
        let value: libc::c_int = value;
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        let result = unsafe {
            // SAFETY: the descriptor is open, and the option's value is an int that outlives the call.
            libc::setsockopt(stream.as_raw_fd(), level, name, (&raw const value).cast(), length)
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn unreachable(info: &ConnInfo, error: &io::Error) -> Error {
    let hint = match error.raw_os_error() {
        None if error.kind() == io::ErrorKind::TimedOut => "the server accepts no connections: it may hang",
        Some(libc::EMFILE) => {
            "raise the limit on open files (ulimit -n) above the number of connections, or use fewer clients"
        }
        _ => "check that a server is running there and listening at this address",
    };
    Error::new(format!("could not connect to {}: {error}", info.place())).hint(hint)
}

/// Reads the first column of a `DataRow`: a column count, then length and bytes of each column.
pub fn first_column(row: &[u8]) -> Option<String> {
    let length = i32::from_be_bytes(row.get(..4)?.try_into().ok()?);
    let value = row.get(4..4 + usize::try_from(length).ok()?)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

fn shortened(sql: &str) -> String {
    let words = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() <= 60 {
        words
    } else {
        format!("{}…", words.chars().take(60).collect::<String>())
    }
}
