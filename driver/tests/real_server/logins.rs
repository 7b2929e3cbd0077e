//! Passwords and TLS.

use std::time::Duration;

use pgdyno_driver::connect::Connection;
use pgdyno_driver::conninfo::Keywords;
use pgdyno_driver::load::Manner;
use pgdyno_driver::protocol::request::Mode;
use pgdyno_driver::record::Counts;
use pgdyno_driver::session::{Outcome, Session};
use pgdyno_driver::workload::{Client, Next, Statement, Transaction};

use crate::program::run;
use crate::server::{Server, query};
use crate::{loaded, signal};

#[test]
fn passwords_are_checked_by_every_method_over_tcp() {
    let Some(server) = Server::shared() else { return };
    let postgres = server.target("postgres");
    loaded(server, "logins", "pgbench-select", &[]);
    for (role, encryption) in [("scram", "scram-sha-256"), ("hashed", "md5"), ("clear", "scram-sha-256")] {
        query(
            &postgres,
            &format!("SET password_encryption = '{encryption}'; CREATE ROLE {role} LOGIN PASSWORD 'p w'"),
        );
        query(&server.target("logins"), &format!("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}"));
        for (password, sqlstate) in [("p w", None), ("wrong", Some("28P01"))] {
            let place = server.tcp("").replace("dbname=postgres", "dbname=logins");
            let target = format!("{place} user={role} password='{password}'");
            let ended = run(&["run", "pgbench-select", &target, "-t", "3", "--json"]);
            match sqlstate {
                None => assert_eq!(ended.role(0)["transactions"], 3, "{role}"),
                Some(code) => assert_eq!(ended.error()["sqlstate"], code, "{role}"),
            }
        }
    }
}

#[test]
fn tls_is_used_and_certificates_are_checked_as_sslmode_says() {
    let Some(server) = Server::shared() else { return };
    if !server.has_tls {
        eprintln!("skipped: this PostgreSQL was built without TLS, or there is no openssl");
        return;
    }
    loaded(server, "tls", "pgbench-tpcb", &[]);
    let attempt = |host: &str, mode: &str, authority: &str| {
        let root = server.directory.join(authority);
        let target = format!(
            "host={host} port={} user=postgres dbname=tls sslmode={mode} sslrootcert={}",
            server.port,
            root.display()
        );
        run(&["run", "pgbench-tpcb", &target, "-M", "pipelined", "-t", "5", "--json"])
    };
    for (host, mode, authority) in [
        ("127.0.0.1", "require", "authority.crt"),
        ("127.0.0.1", "verify-ca", "authority.crt"),
        ("localhost", "verify-full", "authority.crt"),
    ] {
        assert_eq!(attempt(host, mode, authority).role(0)["transactions"], 5, "{mode}");
    }
    for (host, mode, authority, detail) in [
        // As in libpq: whoever names an authority wants it to be asked.
        ("127.0.0.1", "require", "stranger.crt", "UnknownIssuer"),
        ("127.0.0.1", "verify-ca", "stranger.crt", "UnknownIssuer"),
        ("localhost", "verify-full", "stranger.crt", "UnknownIssuer"),
        ("127.0.0.1", "verify-full", "authority.crt", "not valid for name"),
    ] {
        let error = attempt(host, mode, authority).error();
        let expected = format!("could not establish TLS with {host}:{}", server.port);
        assert_eq!(error["message"], expected, "{mode} {authority}");
        assert!(error["detail"].as_str().unwrap().contains(detail), "{error}");
    }
    let clear = run(&["run", "pgbench-tpcb", &server.tcp("user=postgres"), "--json"]).error();
    assert_eq!(clear["sqlstate"], "28000", "the server lets nobody in without TLS");
}

#[test]
fn scram_is_bound_to_tls_if_that_is_required() {
    let Some(server) = Server::shared().filter(|server| server.has_tls) else { return };
    query(&server.target("postgres"), "CREATE ROLE bound LOGIN PASSWORD 'p w'");
    let attempt = |more: &str| {
        let target = server.tcp(&format!("user=bound password='p w' {more}"));
        let info = Keywords::parse(&target).unwrap().resolve().unwrap();
        Connection::open(&info).map(|_| ()).map_err(|error| error.message)
    };
    // The server compares the hash of its certificate with the one that it is told.
    assert_eq!(attempt("sslmode=require channel_binding=require require_auth=scram-sha-256"), Ok(()));
    assert_eq!(attempt("sslmode=require channel_binding=disable"), Ok(()));
    let refused = "the server requests authentication method scram-sha-256";
    assert_eq!(attempt("sslmode=require require_auth=none"), Err(refused.to_string()));
}

#[test]
fn a_role_logs_in_with_its_certificate_and_an_address() {
    let Some(server) = Server::shared().filter(|server| server.has_tls) else { return };
    query(&server.target("postgres"), "CREATE ROLE certified LOGIN");
    let place = |name: &str| server.directory.join(name).display().to_string();
    let attempt = |more: &str| {
        let authority = place("authority.crt");
        // The name is not looked up, and the certificate is made out to it all the same.
        let server = format!("host=localhost hostaddr=127.0.0.1 port={} dbname=postgres", server.port);
        let target = format!("{server} user=certified sslmode=verify-full sslrootcert={authority} {more}");
        let info = Keywords::parse(&target).unwrap().resolve().unwrap();
        Connection::open(&info).map(|_| ()).map_err(|error| error.to_string())
    };
    let (certificate, key) = (place("client.crt"), place("client.key"));
    assert_eq!(attempt(&format!("sslcert={certificate} sslkey={key}")), Ok(()));
    assert!(attempt("").unwrap_err().contains("connection requires a valid client certificate"));
    let error = attempt(&format!("sslcert={certificate} sslkey={}", place("no.key"))).unwrap_err();
    assert!(error.contains(&format!("could not read a key from \"{}\"", place("no.key"))), "{error}");
}

#[test]
fn a_request_that_is_larger_than_all_buffers_goes_through_tls() {
    let Some(server) = Server::shared().filter(|server| server.has_tls) else { return };
    let info = Keywords::parse(&server.tcp("user=postgres sslmode=require")).unwrap().resolve().unwrap();
    let connection = Connection::open(&info).unwrap();
    let backend = connection.backend_pid.to_string();
    let transport = connection.into_transport().unwrap();
    let mut session = Session::new((0, 0, 0), Box::new(OneLargeText), transport).unwrap();
    let statements = [Statement::unprepared("text")];
    let manner = Manner { statements: &statements, mode: Mode::Simple, retried: &[] };
    let mut counts = Counts::new(1);
    signal("-STOP", &backend);
    let begun = session.begin(manner, 0);
    let is_waiting = session.has_unwritten();
    signal("-CONT", &backend);
    assert_eq!((begun.unwrap(), is_waiting), (Next::Ready, true));
    let outcome = (0..24_000).find_map(|_| {
        if session.has_unwritten() {
            session.flush().unwrap(); // as the event loop does: no write is tried if nothing waits
        }
        let outcome = session.receive(manner, &mut counts, (1, false), &mut [0; 4096]).unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(5));
        (outcome != Outcome::Pending).then_some(outcome)
    });
    assert_eq!(outcome, Some(Outcome::Committed));
}

/// Sends 16 MiB.
pub struct OneLargeText;

impl Client for OneLargeText {
    fn next(&mut self, transaction: &mut Transaction) -> Next {
        transaction.call(0).text(|out| {
            out.extend_from_slice(b"SELECT length('");
            out.resize(out.len() + (16 << 20), b'x');
            out.extend_from_slice(b"')");
        });
        Next::Ready
    }
}
