//! A session with a transaction under way, whose server is a socket here.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;

use pgdyno_driver::load::Manner;
use pgdyno_driver::protocol::request::Mode;
use pgdyno_driver::record::Counts;
use pgdyno_driver::session::{Outcome, Session};
use pgdyno_driver::transport::Transport;
use pgdyno_driver::workload::{Client, Next, Statement, Transaction};

/// Two statements per transaction; the first gives a value back.
struct TwoCalls;

impl Client for TwoCalls {
    fn next(&mut self, transaction: &mut Transaction) -> Next {
        transaction.call_for_value(0).int(7);
        transaction.call(0).int(8);
        Next::Ready
    }
}

/// The session, and what it has been told.
pub struct Fed {
    pub session: Session,
    /// The server's end of its connection.
    pub server: UnixStream,
    statements: Vec<Statement>,
    mode: Mode,
    /// What it has counted.
    pub counts: Counts,
    retried: Vec<String>,
}

impl Fed {
    /// Begins a transaction.
    pub fn begin(mode: Mode) -> Self {
        let (client, server) = UnixStream::pair().unwrap();
        let session = Session::new((0, 0, 0), Box::new(TwoCalls), Transport::Unix(client)).unwrap();
        let statements = vec![Statement::prepared("read", "SELECT $1")];
        let retried = vec!["40001".to_string()];
        let mut fed = Self { session, server, statements, mode, counts: Counts::new(1), retried };
        assert_eq!(fed.begin_again().unwrap(), Next::Ready);
        fed
    }

    /// Begins the next transaction.
    pub fn begin_again(&mut self) -> io::Result<Next> {
        let manner = Manner { statements: &self.statements, mode: self.mode, retried: &self.retried };
        self.session.begin(manner, 0)
    }

    /// Feeds some bytes; `None` when the session has refused them.
    pub fn feed(&mut self, bytes: &[u8]) -> Option<Outcome> {
        self.server.write_all(bytes).unwrap();
        let manner = Manner { statements: &self.statements, mode: self.mode, retried: &self.retried };
        self.session.receive(manner, &mut self.counts, (1, false), &mut [0; 64]).unwrap().ok()
    }
}
