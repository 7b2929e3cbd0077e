//! A small PostgreSQL server on a Unix socket that answers as a test tells it.

mod login;
mod peer;

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub use login::Login;
use peer::Peer;

/// Whatever is waited for takes less, also on a machine that is slow or busy.
const LIMIT: Duration = Duration::from_secs(120);

/// A statement that a client asks for.
#[derive(Debug)]
pub struct Asked<'a> {
    /// Counts connections; 0 is the one that holds the driver's lock.
    pub connection: usize,
    /// Counts statements of the connection, without `ROLLBACK`.
    pub number: usize,
    /// Its text.
    pub sql: &'a str,
    /// Its parameters, if they do not stand in the text.
    pub arguments: &'a [String],
}

/// What the mock does about it.
#[derive(Clone, Debug)]
pub enum Reaction {
    /// Completes the statement.
    Complete,
    /// Answers with an error of this SQLSTATE.
    Fail(&'static str),
    /// Sends these bytes before it completes the statement.
    Prefix(Vec<u8>),
    /// Sends these bytes and nothing else any more.
    Bytes(Vec<u8>),
    /// Sends these bytes again and again.
    Endless(Vec<u8>),
    /// Sends these bytes and closes the connection.
    Close(Vec<u8>),
    /// Closes the connection after the answers of the whole transaction.
    CloseWhenIdle(Vec<u8>),
}

type React = dyn Fn(&Asked) -> Reaction + Send + Sync;

/// What a mock was made of.
pub struct Behaviour {
    login: Login,
    react: Box<React>,
    /// Fails Parse messages that name a table of pgbench with this SQLSTATE.
    prepare_error: Option<&'static str>,
    /// Whether a connection that asks for the driver's lock gets it.
    is_lock_free: fn(usize) -> bool,
}

/// A mock at work. Its threads end with their connections.
pub struct Mock {
    directory: PathBuf,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Mock {
    /// Starts a server that reacts to statements.
    pub fn start(react: impl Fn(&Asked) -> Reaction + Send + Sync + 'static) -> Self {
        Self::with(Login::Trust, None, react)
    }

    /// Starts one that wants a login, or fails Parse messages.
    pub fn with(
        login: Login,
        prepare_error: Option<&'static str>,
        react: impl Fn(&Asked) -> Reaction + Send + Sync + 'static,
    ) -> Self {
        Self::behaving(Behaviour { login, prepare_error, react: Box::new(react), is_lock_free: |_| true })
    }

    /// Starts one that gives the driver's lock to some connections only.
    pub fn locking(
        is_lock_free: fn(usize) -> bool,
        react: impl Fn(&Asked) -> Reaction + Send + Sync + 'static,
    ) -> Self {
        let react = Box::new(react);
        Self::behaving(Behaviour { login: Login::Trust, prepare_error: None, react, is_lock_free })
    }

    fn behaving(behaviour: Behaviour) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("pgdyno-mock-{}-{number}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let listener = UnixListener::bind(directory.join(".s.PGSQL.5432")).unwrap();
        let behaviour = Arc::new(behaviour);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = seen.clone();
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let (behaviour, all) = (behaviour.clone(), all.clone());
                all.lock().unwrap().push(String::new());
                // A client that goes away is no failure of the mock.
                std::thread::spawn(move || Peer::new(stream.unwrap(), number, &behaviour, &all).serve());
            }
        });
        Self { directory, seen }
    }

    /// Where it is.
    pub fn target(&self) -> String {
        format!("host={} port=5432 user=ann dbname=shop connect_timeout=60", self.directory.display())
    }

    /// The same as JSON.
    pub fn keywords(&self) -> serde_json::Value {
        serde_json::json!({"host": self.directory, "port": "5432", "user": "ann", "dbname": "shop"})
    }

    /// How many connections there have been.
    pub fn connections(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// Waits until somebody has connected.
    pub fn await_connection(&self) {
        self.await_seen("nobody has connected", |seen| !seen.is_empty());
    }

    /// Waits until a connection has asked for this many prepared statements to be executed, answered or not.
    pub fn await_executions(&self, connection: usize, count: usize) {
        self.await_seen("too few executions", |seen| {
            seen.get(connection).is_some_and(|tags| tags.matches('E').count() >= count)
        });
    }

    fn await_seen(&self, otherwise: &str, is_enough: impl Fn(&[String]) -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !is_enough(&self.seen.lock().unwrap()) {
            assert!(Instant::now() < deadline, "{otherwise}: {:?}", self.seen.lock().unwrap());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The types of the messages that a connection has sent after its login.
    pub fn tags(&self, connection: usize) -> String {
        self.seen.lock().unwrap()[connection].clone()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A message of this type.
pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// An `ErrorResponse`, `FATAL` or not.
pub fn error(severity: &str, code: &str) -> Vec<u8> {
    message(b'E', format!("S{severity}\0V{severity}\0C{code}\0Mthe mock says {code}\0\0").as_bytes())
}

/// Many notices: more than a socket holds.
pub fn notices() -> Vec<u8> {
    message(b'N', b"SNOTICE\0C00000\0Mstill here\0\0").repeat(10_000)
}
