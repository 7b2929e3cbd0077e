//! Where a server is and how to log in: libpq's URIs, `keyword=value` strings and environment, the part of
//! them that a load generator needs. Service and password files are read by pgdyno, which hands on the result.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::protocol::startup::Login;

const DEFAULT_PORT: u16 = 5432;
const DEFAULT_SOCKETS: &str = "/var/run/postgresql";
const KNOWN: &str = "host, port, user, password, dbname, sslmode, sslrootcert, application_name, \
                     connect_timeout, options";

/// How much TLS is wanted, as libpq names it. `allow` and `prefer` are not offered: a comparison must not
/// depend on what was negotiated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslMode {
    /// No TLS.
    #[default]
    Disable,
    /// TLS without checking who answers.
    Require,
    /// The certificate must be signed by a known authority.
    VerifyCa,
    /// And be made out to the host's name.
    VerifyFull,
}

/// A server and a login.
#[derive(Clone, Debug)]
pub struct ConnInfo {
    /// A host name, an address, or the directory of a Unix socket.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Who logs in.
    pub login: Login,
    /// How much TLS.
    pub ssl_mode: SslMode,
    /// File of trusted certificates (PEM).
    pub ssl_root_cert: Option<PathBuf>,
    /// Limit of one attempt to connect.
    pub connect_timeout: Duration,
}

/// Keywords and values, as libpq names them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Keywords(pub BTreeMap<String, String>);

impl Keywords {
    /// Reads a URI or a `keyword=value` string.
    pub fn parse(text: &str) -> Result<Self> {
        match text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://")) {
            Some(rest) => parse_uri(rest),
            None => parse_pairs(text),
        }
    }

    /// Takes what is missing from libpq's environment variables.
    #[must_use]
    pub fn or_environment(mut self, read: impl Fn(&str) -> Option<String>) -> Self {
        for (variable, keyword) in [
            ("PGHOST", "host"),
            ("PGPORT", "port"),
            ("PGUSER", "user"),
            ("PGPASSWORD", "password"),
            ("PGDATABASE", "dbname"),
            ("PGSSLMODE", "sslmode"),
            ("PGSSLROOTCERT", "sslrootcert"),
            ("PGCONNECT_TIMEOUT", "connect_timeout"),
            ("PGOPTIONS", "options"),
        ] {
            if let Some(value) = read(variable).filter(|value| !value.is_empty()) {
                self.0.entry(keyword.into()).or_insert(value);
            }
        }
        self
    }

    /// Checks the keywords and completes them with libpq's defaults.
    pub fn resolve(self) -> Result<ConnInfo> {
        let mut values = self.0;
        let mut take = |name: &str| values.remove(name);
        let user = match take("user") {
            Some(user) => user,
            None => operating_system_user()?,
        };
        let info = ConnInfo {
            host: take("host").unwrap_or_else(|| DEFAULT_SOCKETS.into()),
            port: number(take("port"), "port", DEFAULT_PORT)?,
            ssl_mode: ssl_mode(take("sslmode").as_deref())?,
            ssl_root_cert: take("sslrootcert").map(PathBuf::from),
            connect_timeout: Duration::from_secs(u64::from(number(
                take("connect_timeout"),
                "connect_timeout",
                30,
            )?)),
            login: Login {
                database: take("dbname").unwrap_or_else(|| user.clone()),
                user,
                password: take("password"),
                application_name: take("application_name").unwrap_or_else(|| "pgdyno-driver".into()),
                options: take("options"),
            },
        };
        match values.keys().next() {
            None => Ok(info),
            Some(name) => Err(Error::new(format!("unknown connection keyword \"{name}\""))
                .detail(format!("known: {KNOWN}"))),
        }
    }
}

impl ConnInfo {
    /// The path of the Unix socket, if the host is a directory.
    pub fn socket_path(&self) -> Option<PathBuf> {
        self.host.starts_with('/').then(|| PathBuf::from(format!("{}/.s.PGSQL.{}", self.host, self.port)))
    }

    /// Names the server in messages; never with a password.
    pub fn place(&self) -> String {
        match self.socket_path() {
            Some(path) => path.display().to_string(),
            None => format!("{}:{}", self.host, self.port),
        }
    }
}

fn parse_uri(rest: &str) -> Result<Keywords> {
    let mut found = BTreeMap::new();
    let (main, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (place, database) = main.split_once('/').unwrap_or((main, ""));
    let (account, address) = match place.rsplit_once('@') {
        Some((account, address)) => (account, address),
        None => ("", place),
    };
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    let (host, port) = split_address(address)?;
    for (name, value) in
        [("user", user), ("password", password), ("host", host), ("port", port), ("dbname", database)]
    {
        if !value.is_empty() {
            found.insert(name.to_string(), percent_decode(value)?);
        }
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or_else(|| malformed(pair))?;
        found.insert(percent_decode(name)?, percent_decode(value)?);
    }
    Ok(Keywords(found))
}

fn split_address(address: &str) -> Result<(&str, &str)> {
    if address.contains(',') {
        return Err(Error::new("a URI with several hosts is not supported")
            .hint("name the one server that is to be measured"));
    }
    if let Some(rest) = address.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or_else(|| malformed(address))?;
        return Ok((host, port.strip_prefix(':').unwrap_or("")));
    }
    Ok(address.split_once(':').unwrap_or((address, "")))
}

fn parse_pairs(text: &str) -> Result<Keywords> {
    let mut found = BTreeMap::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or_else(|| malformed(rest))?;
        let (value, after) = take_value(after.trim_start())?;
        found.insert(name.trim().to_string(), value);
        rest = after.trim_start();
    }
    Ok(Keywords(found))
}

/// Takes one value, quoted with `'` and with `\` as the escape character, as libpq does.
fn take_value(text: &str) -> Result<(String, &str)> {
    let is_quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut characters = text.char_indices().skip(usize::from(is_quoted));
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.push(characters.next().ok_or_else(|| malformed("a single \\"))?.1),
            '\'' if is_quoted => return Ok((value, &text[at + 1..])),
            c if !is_quoted && c.is_whitespace() => return Ok((value, &text[at..])),
            c => value.push(c),
        }
    }
    if is_quoted { Err(malformed("a quote that is not closed")) } else { Ok((value, "")) }
}

fn percent_decode(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digits = rest.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let decoded = digits.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        bytes.push(decoded.ok_or_else(|| malformed("a % without two hexadecimal digits"))?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| malformed("bytes that are not UTF-8"))
}

/// What was malformed is not repeated in full: it may hold a password.
fn malformed(what: &str) -> Error {
    let shown = what.split(['=', ':', '@']).next().unwrap_or_default();
    Error::new(format!("cannot read the connection string near \"{shown}\""))
        .hint("write postgresql://user@host:port/dbname or host=… port=… user=… dbname=…")
}

fn number(text: Option<String>, name: &str, default: u16) -> Result<u16> {
    text.map_or(Ok(default), |text| {
        text.parse().map_err(|_| {
            Error::new(format!("connection keyword {name} has no valid value: \"{text}\""))
                .hint("write a number from 1 to 65535")
        })
    })
}

fn ssl_mode(text: Option<&str>) -> Result<SslMode> {
    match text {
        None | Some("disable") => Ok(SslMode::Disable),
        Some("require") => Ok(SslMode::Require),
        Some("verify-ca") => Ok(SslMode::VerifyCa),
        Some("verify-full") => Ok(SslMode::VerifyFull),
        Some(other) => Err(Error::new(format!("sslmode \"{other}\" is not supported"))
            .detail("with allow and prefer, whether TLS is measured would depend on the server")
            .hint("choose disable, require, verify-ca or verify-full")),
    }
}

fn operating_system_user() -> Result<String> {
    ["USER", "LOGNAME"]
        .iter()
        .find_map(|variable| std::env::var(variable).ok())
        .ok_or_else(|| Error::new("no role to log in as").hint("add user=… or set PGUSER"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resolved(text: &str) -> Result<ConnInfo> {
        Keywords::parse(text)?.resolve()
    }

    #[test]
    fn a_uri_names_everything() {
        let info = resolved("postgresql://ann:p%40ss@db.example:6432/shop?sslmode=require").unwrap();
        assert_eq!((info.host.as_str(), info.port), ("db.example", 6432));
        assert_eq!((info.login.user.as_str(), info.login.database.as_str()), ("ann", "shop"));
        assert_eq!((info.login.password.as_deref(), info.ssl_mode), (Some("p@ss"), SslMode::Require));
    }

    #[test]
    fn a_socket_directory_may_be_percent_encoded() {
        let info = resolved("postgresql://ann@%2Ftmp%2Fpg/shop?port=5433").unwrap();
        assert_eq!(info.socket_path(), Some(PathBuf::from("/tmp/pg/.s.PGSQL.5433")));
    }

    #[test]
    fn an_ipv6_address_stands_in_brackets() {
        let info = resolved("postgres://ann@[::1]:7/x").unwrap();
        assert_eq!((info.host.as_str(), info.port), ("::1", 7));
    }

    #[test]
    fn pairs_may_be_quoted() {
        let info = resolved(r"host=/tmp user='o\'neil x' dbname = shop").unwrap();
        assert_eq!((info.login.user.as_str(), info.login.database.as_str()), ("o'neil x", "shop"));
    }

    #[test]
    fn the_environment_fills_what_is_missing() {
        let read = |name: &str| (name == "PGHOST" || name == "PGUSER").then(|| format!("from-{name}"));
        let info = Keywords::parse("user=ann").unwrap().or_environment(read).resolve().unwrap();
        assert_eq!((info.host.as_str(), info.login.user.as_str()), ("from-PGHOST", "ann"));
    }

    #[test]
    fn an_unknown_keyword_is_named_with_those_that_are_known() {
        let error = resolved("user=a hots=b").unwrap_err();
        assert_eq!(error.message, "unknown connection keyword \"hots\"");
        assert!(error.detail.unwrap().starts_with("known: host, port"));
    }

    #[test]
    fn sslmode_prefer_is_refused_with_the_reason() {
        let error = resolved("user=a sslmode=prefer").unwrap_err();
        assert_eq!(error.message, "sslmode \"prefer\" is not supported");
    }

    #[test]
    fn a_malformed_string_does_not_show_the_password() {
        let error = Keywords::parse("postgresql://ann:sec%ret@h/d").unwrap_err();
        assert!(!error.to_string().contains("ret@"), "{error}");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,80}") {
            let _ = Keywords::parse(&text).and_then(Keywords::resolve);
        }
    }
}
