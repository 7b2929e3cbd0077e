//! Connects and logs in, waiting for each answer up to a limit. What follows on the connection is either
//! `execute` here (loading, preparing) or the event loop's.

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
/// Their answers fit into a socket's buffer: nobody reads them while these are sent.
const PREPARED_AT_ONCE: usize = 1000;
/// Building an index or loading a table takes its time, but none of ours takes longer than this.
pub const LONG: Duration = Duration::from_secs(6 * 3600);
/// However long an answer takes, what is sent is taken sooner: a server that copies rows only writes them down.
const MOST_TO_SEND: Duration = Duration::from_secs(120);
/// A Unix socket whose queue is full is tried again this often.
const QUEUE_PAUSE: Duration = Duration::from_millis(5);

/// A connection that is logged in and idle.
pub struct Connection {
    /// Its stream, in blocking mode.
    pub transport: Transport,
    /// The server's version, as it reports it.
    pub server_version: String,
    /// The backend's process id.
    pub backend_pid: i32,
    /// A remark on the login's security.
    pub note: Option<String>,
    place: String,
    inbox: BytesMut,
    answer_limit: Duration,
    /// Until when the present answer is waited for: messages may come without end, and none of them end it.
    deadline: Instant,
}

impl Connection {
    /// Connects and logs in. Waits at most `connect_timeout` for the connection, the login and each answer after it.
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
                return Ok(connection);
            }
        }
    }

    /// Prints the remark on the login's security, if there is one, on standard error.
    pub fn tell_note(&self) {
        if let Some(note) = &self.note {
            terminal::say(&format_args!("note: {}: {note}", self.place));
        }
    }

    /// Lets the server take so long for each of the statements that follow. A server that has gone is noticed all
    /// the same.
    pub fn set_answer_limit(&mut self, limit: Duration) -> Result<()> {
        self.answer_limit = limit;
        self.transport.set_timeouts(limit, limit.min(MOST_TO_SEND)).map_err(|error| self.lost(&error))
    }

    /// Prepares those in `used` of a role's statements, each under its index, if it may be prepared.
    pub fn prepare(&mut self, statements: &[Statement], used: Range<StatementId>) -> Result<()> {
        let numbered: Vec<_> = used.clone().zip(&statements[used]).collect();
        for some in numbered.chunks(PREPARED_AT_ONCE) {
            let mut out = Vec::new();
            for (index, statement) in some {
                if statement.kind == StatementKind::Prepared {
                    write_parse(&mut out, *index, statement);
                }
            }
            write_sync(&mut out);
            self.ask(&out)?;
            self.until_ready(|error| error.while_using_tables("prepare the workload's statements"), |_| {})?;
        }
        Ok(())
    }

    /// Its stream, for the event loop, when everything that has arrived is read.
    pub fn into_transport(mut self) -> Result<Transport> {
        while !self.inbox.is_empty() {
            if let Message::ErrorResponse(body) = self.receive()? {
                return Err(ServerError::of(&body).while_doing(&format!("stay connected to {}", self.place)));
            }
        }
        Ok(self.transport)
    }

    /// Runs a query as text and returns the first column of its first row.
    pub fn execute(&mut self, sql: &str) -> Result<Option<String>> {
        let mut out = Vec::new();
        write_text(&mut out, sql);
        self.ask(&out)?;
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

    /// Sends rows to a `COPY … FROM STDIN`; `next` appends some, and returns false when there are no more.
    pub fn copy_in(&mut self, sql: &str, mut next: impl FnMut(&mut Vec<u8>) -> bool) -> Result<()> {
        let doing = format!("run \"{}\"", shortened(sql));
        let mut out = Vec::new();
        write_text(&mut out, sql);
        self.ask(&out)?;
        loop {
            match self.receive()? {
                Message::CopyInResponse(_) => break,
                Message::NoticeResponse(_) | Message::ParameterStatus(_) => {}
                Message::ErrorResponse(body) => return Err(ServerError::of(&body).while_doing(&doing)),
                _ => return Err(Error::new(format!("could not {doing}: the server did not begin to copy"))),
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
        self.ask(b"c\0\0\0\x04")?;
        self.until_ready(|error| error.while_doing(&doing), |_| {})
    }

    /// Takes messages until the server is ready, or has gone; the first error is returned then.
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
                // The server says why before it closes a connection.
                Err(lost) => return Err(failed.unwrap_or(lost)),
            }
        }
    }

    /// Sends what is to be answered, and waits for that from now on.
    fn ask(&mut self, bytes: &[u8]) -> Result<()> {
        self.deadline = Instant::now() + self.answer_limit;
        self.send(bytes)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let sent = self.transport.write_all(bytes).and_then(|()| self.transport.flush());
        sent.map_err(|error| self.unsent(&error))
    }

    /// Says why bytes could not be sent. If the server has closed the connection, it may have said why before.
    fn unsent(&mut self, why: &io::Error) -> Error {
        self.inbox.extend_from_slice(&self.transport.rest());
        while let Ok(Some(message)) = self.arrived() {
            if let Message::ErrorResponse(body) = message {
                return ServerError::of(&body).while_doing(&format!("talk to {}", self.place));
            }
        }
        self.lost(why)
    }

    /// Takes the next message, if all of it has arrived.
    fn arrived(&mut self) -> Result<Option<Message>> {
        if let Some(length) = self.inbox.get(1..HEADER_BYTES) {
            // Before the parser makes room for it.
            check_length(self.inbox[0], length)?;
        }
        Message::parse(&mut self.inbox).map_err(|error| {
            Error::new(format!("{} does not speak PostgreSQL's protocol", self.place))
                .detail(error.to_string())
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
        Error::new(format!("could not talk to {}: {why}", self.place))
            .hint("does the server run? Its log says why it closes connections")
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

/// Connects without waiting in the kernel, which has no limit for a server whose queue is full.
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
                let why = format!("its queue of connections stayed full for {:.0} s", limit.as_secs_f64());
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

/// Notices within two minutes of waiting that a server's machine has gone, however long an answer may take.
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
            // SAFETY: the descriptor is open, and the option's value is an int that lives through the call.
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
        None if error.kind() == io::ErrorKind::TimedOut => "the server accepts nobody: does it hang?",
        Some(libc::EMFILE) => "allow more open files (ulimit -n) than connections, or use fewer clients",
        _ => "does a server run there, and does it listen at this address?",
    };
    Error::new(format!("could not connect to {}: {error}", info.place())).hint(hint)
}

/// Reads the first column of a row: a count of columns, then length and bytes of each.
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
