//! Connection parameters: the part of libpq's URIs, `keyword=value` strings and environment variables that a
//! load generator needs. pgdyno reads service and password files, and passes on the result.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::connection_string::{self, KNOWN};
use crate::error::{Error, Result};
use crate::protocol::startup::Login;
use crate::security::{Binding, Methods, SslMode};

const DEFAULT_PORT: u16 = 5432;
const DEFAULT_SOCKETS: &str = "/var/run/postgresql";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Meaning of `connect_timeout=0`: no limit in libpq, but every wait has one here.
const NO_TIMEOUT: Duration = Duration::from_secs(6 * 3600);

/// A server and a login.
#[derive(Clone, Debug)]
pub struct ConnInfo {
    /// A host name, an address, or the directory of a Unix socket.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Role, database, password and authentication options.
    pub login: Login,
    /// The host's address; replaces name resolution, as in libpq.
    pub host_address: Option<IpAddr>,
    /// The requested sslmode; `None`: no TLS.
    pub ssl_mode: Option<SslMode>,
    /// File of trusted CA certificates (PEM).
    pub ssl_root_cert: Option<PathBuf>,
    /// The client certificate.
    pub ssl_certificate: Option<ClientCertificate>,
    /// Time limit on a connection attempt and on each answer during it. Default: 30 s; 0, no limit in libpq,
    /// means six hours.
    pub connect_timeout: Duration,
}

/// Files of a certificate and its unencrypted key (PEM).
#[derive(Clone, Debug)]
pub struct ClientCertificate {
    /// The certificate and its chain.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// libpq's keywords and their values.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Keywords(pub BTreeMap<String, String>);

impl Keywords {
    /// Reads a URI or a `keyword=value` string.
    pub fn parse(text: &str) -> Result<Self> {
        connection_string::parse(text).map(Self)
    }

    /// Fills in missing keywords from libpq's environment variables.
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
            ("PGSSLCERT", "sslcert"),
            ("PGSSLKEY", "sslkey"),
            ("PGSSLNEGOTIATION", "sslnegotiation"),
            ("PGSSLCRL", "sslcrl"), // unsupported, as are the next two: mapped so that `resolve` refuses them
            ("PGSSLCRLDIR", "sslcrldir"),
            ("PGREQUIREPEER", "requirepeer"),
            ("PGGSSENCMODE", "gssencmode"),
            ("PGCHANNELBINDING", "channel_binding"),
            ("PGREQUIREAUTH", "require_auth"),
            ("PGHOSTADDR", "hostaddr"),
            ("PGCONNECT_TIMEOUT", "connect_timeout"),
            ("PGOPTIONS", "options"),
        ] {
            if let Some(value) = read(variable).filter(|value| !value.is_empty()) {
                self.0.entry(keyword.into()).or_insert(value);
            }
        }
        self
    }

    /// Checks the keywords and applies libpq's defaults.
    pub fn resolve(self) -> Result<ConnInfo> {
        let mut values = self.0;
        let mut take = |name: &str| values.remove(name);
        let user = match take("user") {
            Some(user) => user,
            None => operating_system_user()?,
        };
        require_supported("gssencmode", take("gssencmode"), &["disable", "prefer"])?;
        require_supported("sslnegotiation", take("sslnegotiation"), &["postgres"])?;
        let address = take("hostaddr");
        let info = ConnInfo {
            host: take("host").or_else(|| address.clone()).unwrap_or_else(|| DEFAULT_SOCKETS.into()),
            host_address: host_address(address)?,
            port: port(take("port"))?,
            ssl_mode: take("sslmode").as_deref().map(SslMode::parse).transpose()?,
            ssl_root_cert: take("sslrootcert").map(PathBuf::from),
            ssl_certificate: ssl_certificate(take("sslcert"), take("sslkey"))?,
            connect_timeout: timeout(take("connect_timeout"))?,
            login: Login {
                database: take("dbname").unwrap_or_else(|| user.clone()),
                user,
                password: take("password"),
                application_name: take("application_name").unwrap_or_else(|| "pgdyno-driver".into()),
                options: take("options"),
                methods: take("require_auth").as_deref().map(Methods::parse).transpose()?.unwrap_or_default(),
                binding: take("channel_binding")
                    .as_deref()
                    .map(Binding::parse)
                    .transpose()?
                    .unwrap_or_default(),
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
    /// The path of the Unix socket; `None` if the host is no directory or has an address.
    pub fn socket_path(&self) -> Option<PathBuf> {
        (self.host.starts_with('/') && self.host_address.is_none())
            .then(|| PathBuf::from(format!("{}/.s.PGSQL.{}", self.host, self.port)))
    }

    /// The server's address for messages; never contains a password.
    pub fn place(&self) -> String {
        match self.socket_path() {
            Some(path) => path.display().to_string(),
            None => format!("{}:{}", self.host, self.port),
        }
    }
}

fn port(text: Option<String>) -> Result<u16> {
    let Some(text) = text else { return Ok(DEFAULT_PORT) };
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| invalid("port", &text).hint("write a number from 1 to 65535"))
}

fn host_address(text: Option<String>) -> Result<Option<IpAddr>> {
    let Some(text) = text else { return Ok(None) };
    let address = text.parse().map_err(|_| {
        invalid("hostaddr", &text)
            .hint("write an address, such as 192.0.2.7 or 2001:db8::7; host names belong in host")
    })?;
    Ok(Some(address))
}

fn timeout(text: Option<String>) -> Result<Duration> {
    let Some(text) = text else { return Ok(DEFAULT_TIMEOUT) };
    match text.parse::<u32>() {
        Ok(0) => Ok(NO_TIMEOUT),
        Ok(seconds) => Ok(Duration::from_secs(seconds.into())),
        Err(_) => {
            Err(invalid("connect_timeout", &text).hint("write a whole number of seconds; 0 means six hours"))
        }
    }
}

fn invalid(name: &str, text: &str) -> Error {
    Error::new(format!("invalid value for connection keyword {name}: \"{text}\""))
}

fn ssl_certificate(certificate: Option<String>, key: Option<String>) -> Result<Option<ClientCertificate>> {
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => {
            Ok(Some(ClientCertificate { certificate: certificate.into(), key: key.into() }))
        }
        _ => Err(Error::new("sslcert and sslkey must be specified together")
            .hint("write both sslcert=FILE and sslkey=FILE")),
    }
}

/// Refuses values that require unsupported features.
fn require_supported(name: &str, value: Option<String>, supported: &[&str]) -> Result<()> {
    match value {
        Some(value) if !supported.contains(&value.as_str()) => {
            Err(Error::new(format!("{name} \"{value}\" is not supported"))
                .hint(format!("choose {}", supported.join(" or "))))
        }
        _ => Ok(()),
    }
}

fn operating_system_user() -> Result<String> {
    ["USER", "LOGNAME"]
        .iter()
        .find_map(|variable| std::env::var(variable).ok())
        .ok_or_else(|| Error::new("no user name specified").hint("add user=… or set PGUSER"))
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
        assert_eq!((info.login.password.as_deref(), info.ssl_mode), (Some("p@ss"), Some(SslMode::Require)));
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
    fn an_address_takes_the_place_of_looking_the_name_up() {
        let info = resolved("user=a host=db.example hostaddr=192.0.2.7").unwrap();
        assert_eq!((info.host.as_str(), info.host_address), ("db.example", Some([192, 0, 2, 7].into())));
        let info = resolved("user=a host=/tmp hostaddr=::1").unwrap();
        assert_eq!((info.socket_path(), info.host_address), (None, Some("::1".parse().unwrap())));
        let error = resolved("user=a hostaddr=db.example").unwrap_err();
        assert_eq!(error.message, "invalid value for connection keyword hostaddr: \"db.example\"");
    }

    #[test]
    fn unsupported_security_is_refused_in_strings_and_in_the_environment() {
        for (text, expected) in [
            ("gssencmode=require", "gssencmode \"require\" is not supported"),
            ("sslnegotiation=direct", "sslnegotiation \"direct\" is not supported"),
            ("channel_binding=always", "channel_binding \"always\" is not supported"),
            ("sslcert=/a.crt", "sslcert and sslkey must be specified together"),
            ("sslcrl=/a.crl", "unknown connection keyword \"sslcrl\""),
        ] {
            assert_eq!(resolved(&format!("user=a {text}")).unwrap_err().message, expected);
        }
        for variable in ["PGSSLCRL", "PGSSLCRLDIR", "PGREQUIREPEER"] {
            let read = |name: &str| (name == variable).then(|| "x".to_string());
            let error = Keywords::parse("user=a").unwrap().or_environment(read).resolve().unwrap_err();
            assert!(error.message.starts_with("unknown connection keyword"), "{variable}");
        }
        assert!(resolved("user=a gssencmode=prefer sslnegotiation=postgres").is_ok());
    }

    #[test]
    fn connect_timeout_is_half_a_minute_by_default_and_six_hours_for_zero() {
        for (text, seconds) in [("", 30), (" connect_timeout=7", 7), (" connect_timeout=0", 6 * 3600)] {
            let info = resolved(&format!("user=a{text}")).unwrap();
            assert_eq!(info.connect_timeout, Duration::from_secs(seconds), "{text}");
        }
    }

    #[test]
    fn an_invalid_number_is_refused_with_a_hint() {
        for (text, value, hint) in [
            ("port", "0", "write a number from 1 to 65535"),
            ("port", "65536", "write a number from 1 to 65535"),
            ("connect_timeout", "-1", "write a whole number of seconds; 0 means six hours"),
        ] {
            let error = resolved(&format!("user=a {text}={value}")).unwrap_err();
            let expected = format!("invalid value for connection keyword {text}: \"{value}\"");
            assert_eq!((error.message, error.hint.unwrap().as_str()), (expected, hint));
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,80}") {
            let _ = Keywords::parse(&text).and_then(Keywords::resolve);
        }
    }
}
