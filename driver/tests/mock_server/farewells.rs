//! Servers that say why they close a connection, to a driver that works with one connection at a time.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;

use pgdyno_driver::connect::Connection;
use pgdyno_driver::conninfo::Keywords;
use pgdyno_driver::error::Error;
use pgdyno_driver::transport::Transport;

use crate::mock::{Mock, Reaction, error, message};
use crate::program::run;

/// A connection to a server that lets it in, answers the first query with these bytes, and has closed it when its
/// thread has ended.
fn connected(name: &str, answers: Vec<u8>) -> (Connection, JoinHandle<io::Result<()>>) {
    let directory = std::env::temp_dir().join(format!("pgdyno-farewell-{}-{name}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let listener = UnixListener::bind(directory.join(".s.PGSQL.5432")).unwrap();
    let server = std::thread::spawn(move || {
        let mut stream = listener.accept()?.0;
        pass_over(&mut stream)?;
        stream.write_all(&[message(b'R', &[0; 4]), message(b'Z', b"I")].concat())?;
        stream.read_exact(&mut [0])?;
        pass_over(&mut stream)?;
        stream.write_all(&answers)?;
        stream.shutdown(Shutdown::Both) // at once, though a program that another test starts may have a copy
    });
    let target = format!("host={} user=ann dbname=shop", directory.display());
    let connection = Connection::open(&Keywords::parse(&target).unwrap().resolve().unwrap());
    std::fs::remove_dir_all(&directory).unwrap();
    (connection.unwrap(), server)
}

/// Reads a message from its length on.
fn pass_over(stream: &mut impl Read) -> io::Result<()> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    stream.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize - 4])
}

fn assert_told(error: &Error) {
    assert_eq!(error.sqlstate.as_deref(), Some("57P01"), "{error}");
    assert!(error.message.starts_with("could not communicate with /"), "{error}");
    assert!(error.message.ends_with(": the mock says 57P01"), "{error}");
}

#[test]
fn a_server_that_goes_between_two_statements_is_quoted_when_the_next_one_cannot_be_sent() {
    let ready = [message(b'C', b"SET\0"), message(b'Z', b"I")].concat();
    let (mut connection, server) = connected("idle", [ready.clone(), error("FATAL", "57P01")].concat());
    connection.execute("SET a = 1").unwrap();
    server.join().unwrap().unwrap();
    assert_told(&connection.execute("SET b = 1").unwrap_err());

    let (mut connection, server) = connected("mute", ready);
    connection.execute("SET a = 1").unwrap();
    server.join().unwrap().unwrap();
    let error = connection.execute("SET b = 1").unwrap_err();
    assert_eq!(error.sqlstate, None);
    assert!(error.message.ends_with(": Broken pipe (os error 32)"), "{error}");
}

#[test]
fn a_server_that_goes_while_rows_are_sent_to_it_is_quoted() {
    let answers = [message(b'G', b"\0\0\0"), error("FATAL", "57P01")].concat();
    let (mut connection, server) = connected("copy", answers);
    let mut server = Some(server);
    let error = connection.copy_in("COPY t FROM STDIN", |out| {
        out.extend_from_slice(b"1\n");
        server.take().is_none_or(|server| server.join().unwrap().is_ok())
    });
    assert_told(&error.unwrap_err());
}

#[test]
fn a_server_that_goes_while_it_is_waited_for_is_quoted() {
    let mock = Mock::start(|_| Reaction::Close(error("FATAL", "57P01")));
    let ended = run(&["load", "pgbench-select", &mock.target()]);
    assert_eq!(ended.status, Some(1));
    assert!(
        ended.err.contains("could not run \"BEGIN\": the mock says 57P01 (SQLSTATE 57P01)"),
        "{}",
        ended.err
    );
}

#[test]
fn what_a_server_has_sent_over_tcp_outlives_its_reset_of_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.write_all(b"a request that is never read").unwrap();
    let mut server = listener.accept().unwrap().0;
    server.peek(&mut [0]).unwrap(); // to close it resets the connection now
    server.write_all(b"farewell").unwrap();
    drop(server);
    let mut transport = Transport::Tcp(client);
    while transport.write_all(b"more").is_ok() {}
    assert_eq!(transport.rest(), b"farewell");
}

#[test]
fn a_server_that_answers_the_request_for_tls_with_an_error_does_not_lack_tls() {
    for (answer, expected) in [
        (
            &b"Ecould not fork new process for connection\n\0"[..],
            " answered the request for TLS with an error",
        ),
        (b"N", " does not offer TLS"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let mut stream = listener.accept()?.0;
            stream.read_exact(&mut [0; 8])?;
            stream.write_all(answer)
        });
        let target = format!("host=127.0.0.1 port={port} user=ann sslmode=require");
        let error = Connection::open(&Keywords::parse(&target).unwrap().resolve().unwrap()).map(|_| ());
        server.join().unwrap().unwrap();
        assert_eq!(error.unwrap_err().message, format!("127.0.0.1:{port}{expected}"));
    }
}
