//! Startup and authentication (none, password, MD5, SCRAM-SHA-256) as a state machine without I/O.

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use super::server_error::ServerError;
use crate::error::{Error, Result};
use crate::security::{Binding, Channel, Method, Methods};

/// Maximum number of SCRAM iterations: the library's limit. PostgreSQL's default is 4096.
const MAX_ITERATIONS: u64 = 100_000;

/// The parameters of a login.
#[derive(Clone, Debug, Default)]
pub struct Login {
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// Password, if specified.
    pub password: Option<String>,
    /// `application_name`, as shown in `pg_stat_activity`.
    pub application_name: String,
    /// Command-line options for the backend (`-c name=value`).
    pub options: Option<String>,
    /// Accepted authentication methods.
    pub methods: Methods,
    /// SCRAM channel binding.
    pub binding: Binding,
}

/// The state of a startup.
pub struct Startup<'a> {
    login: &'a Login,
    channel: Channel,
    method: Method,
    scram: Option<ScramSha256>,
    is_proven: bool,
    is_admitted: bool,
    /// The reported `server_version`.
    pub server_version: String,
    /// Whether the database has the encoding `SQL_ASCII`, which allows any bytes.
    pub allows_any_bytes: bool,
    /// The backend's process id.
    pub backend_pid: i32,
    /// A note on the login's security.
    pub note: Option<String>,
}

impl<'a> Startup<'a> {
    /// Begins the startup: writes the startup message to `out`.
    pub fn begin(login: &'a Login, channel: Channel, out: &mut BytesMut) -> Result<Self> {
        let mut parameters = vec![
            ("user", login.user.as_str()),
            ("database", login.database.as_str()),
            ("application_name", login.application_name.as_str()),
            ("client_encoding", "UTF8"),
        ];
        if let Some(options) = &login.options {
            parameters.push(("options", options));
        }
        frontend::startup_message(parameters, out).map_err(|_| {
            Error::new(format!("cannot log in as \"{}\" to \"{}\"", login.user, login.database))
                .detail("a name contains a zero byte")
        })?;
        Ok(Self {
            login,
            channel,
            method: Method::None,
            scram: None,
            is_proven: false,
            is_admitted: false,
            server_version: String::new(),
            allows_any_bytes: false,
            backend_pid: 0,
            note: None,
        })
    }

    /// Takes one message and writes any answer to `out`. Returns true when the server is ready.
    pub fn advance(&mut self, message: Message, out: &mut BytesMut) -> Result<bool> {
        match message {
            Message::AuthenticationOk => self.admit()?,
            Message::NoticeResponse(_) => {}
            Message::AuthenticationCleartextPassword => {
                self.accept_readable(Method::Password)?;
                let password = self.password()?;
                frontend::password_message(password.as_bytes(), out).map_err(unencodable)?;
            }
            Message::AuthenticationMd5Password(body) => {
                self.accept_readable(Method::Md5)?;
                let hash = md5_hash(self.login.user.as_bytes(), self.password()?.as_bytes(), body.salt());
                frontend::password_message(hash.as_bytes(), out).map_err(unencodable)?;
            }
            Message::AuthenticationSasl(body) => self.begin_scram(&body, out)?,
            Message::AuthenticationSaslContinue(body) => {
                check_iterations(body.data())?;
                let scram = self.scram()?;
                scram.update(body.data()).map_err(|error| unproven(&error.to_string()))?;
                frontend::sasl_response(scram.message(), out).map_err(unencodable)?;
            }
            Message::AuthenticationSaslFinal(body) => {
                self.scram()?.finish(body.data()).map_err(|error| unproven(&error.to_string()))?;
                self.is_proven = true;
            }
            Message::ParameterStatus(body) => {
                let value = body.value().unwrap_or_default();
                match body.name() {
                    Ok("server_version") => self.server_version = value.to_string(),
                    Ok("server_encoding") => self.allows_any_bytes = value == "SQL_ASCII",
                    _ => {}
                }
            }
            Message::BackendKeyData(body) => self.backend_pid = body.process_id(),
            Message::ReadyForQuery(_) if self.is_admitted => return Ok(true),
            Message::ErrorResponse(body) => return Err(self.refused(&body)),
            Message::ReadyForQuery(_) => {
                return Err(Error::new("the server sent ReadyForQuery before authentication was complete"));
            }
            _ => {
                return Err(Error::new("the server requested an unsupported authentication method")
                    .detail("supported: none, password, md5, scram-sha-256"));
            }
        }
        Ok(false)
    }

    /// SCRAM is mutual: a server that has not proven knowledge of the password is not authentic.
    fn admit(&mut self) -> Result<()> {
        if self.scram.is_some() && !self.is_proven {
            return Err(unproven("it completed the authentication without proof"));
        }
        if self.method == Method::None {
            self.accept(Method::None)?;
        }
        self.is_admitted = true;
        Ok(())
    }

    /// Continues with a method if it is accepted.
    fn accept(&mut self, method: Method) -> Result<()> {
        self.login.methods.require(method)?;
        if self.login.binding == Binding::Require && method != Method::ScramSha256 {
            return Err(unbound(&format!("authentication method {method} has no channel binding")));
        }
        self.method = method;
        Ok(())
    }

    /// Accepts a method that sends the password or a hash of it, if the connection is private.
    fn accept_readable(&mut self, method: Method) -> Result<()> {
        self.accept(method)?;
        self.note = self.channel.require_private(method)?;
        Ok(())
    }

    fn begin_scram(
        &mut self,
        body: &postgres_protocol::message::backend::AuthenticationSaslBody,
        out: &mut BytesMut,
    ) -> Result<()> {
        self.accept(Method::ScramSha256)?;
        let offers = |mechanism| body.mechanisms().any(|name| Ok(name == mechanism)).unwrap_or(false);
        let (mechanism, binding) = self.bind(offers(SCRAM_SHA_256_PLUS))?;
        if !offers(mechanism) {
            return Err(Error::new("the server offers no supported SASL mechanism")
                .detail(format!("supported: {SCRAM_SHA_256}")));
        }
        let password = self.password()?.as_bytes().to_vec();
        self.is_proven = false;
        let scram = self.scram.insert(ScramSha256::new(&password, binding));
        frontend::sasl_initial_response(mechanism, scram.message(), out).map_err(unencodable)
    }

    /// Chooses the mechanism, as libpq does. Reporting that no binding was offered lets the server detect a
    /// removed offer.
    fn bind(&self, is_offered: bool) -> Result<(&'static str, ChannelBinding)> {
        let is_wanted = self.login.binding != Binding::Disable;
        match &self.channel {
            Channel::Tls(Some(hash)) if is_wanted && is_offered => {
                Ok((SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(hash.clone())))
            }
            _ if self.login.binding == Binding::Require => Err(unbound(match &self.channel {
                Channel::Tls(Some(_)) => "the server does not offer it",
                Channel::Tls(None) => "the certificate's signature algorithm has no single hash",
                Channel::Socket | Channel::Clear { .. } => "the connection has no TLS",
            })),
            Channel::Tls(Some(_)) if is_wanted => Ok((SCRAM_SHA_256, ChannelBinding::unrequested())),
            _ => Ok((SCRAM_SHA_256, ChannelBinding::unsupported())),
        }
    }

    fn scram(&mut self) -> Result<&mut ScramSha256> {
        self.scram.as_mut().ok_or_else(|| Error::new("the server continued a SASL exchange it did not start"))
    }

    fn password(&self) -> Result<&str> {
        self.login.password.as_deref().ok_or_else(|| {
            Error::new(format!("the server requires a password for role \"{}\"", self.login.user))
                .hint("set PGPASSWORD; pgdyno passes on passwords from ~/.pgpass and service files")
        })
    }

    fn refused(&self, body: &postgres_protocol::message::backend::ErrorResponseBody) -> Error {
        let error = ServerError::of(body);
        error.while_doing(&format!("log in as \"{}\" to \"{}\"", self.login.user, self.login.database))
    }
}

/// Refuses a challenge with too many iterations. The parser reports a malformed challenge.
fn check_iterations(challenge: &[u8]) -> Result<()> {
    let text = String::from_utf8_lossy(challenge);
    let count = text.rsplit_once(",i=").map_or("", |(_, count)| count);
    if count.is_empty() || count.parse().is_ok_and(|count: u64| count <= MAX_ITERATIONS) {
        return Ok(());
    }
    Err(Error::new(format!("the server requests more than {MAX_ITERATIONS} SCRAM iterations"))
        .detail(format!("it requests {}", count.chars().take(20).collect::<String>()))
        .hint("if this is the right server, lower scram_iterations there and set the role's password again"))
}

fn unbound(why: &str) -> Error {
    Error::new("channel_binding=require cannot be fulfilled").detail(why)
}

fn unproven(why: &str) -> Error {
    Error::new("the server did not prove that it knows the password").detail(why)
}

#[allow(clippy::needless_pass_by_value)] // it is handed to map_err
fn unencodable(error: std::io::Error) -> Error {
    Error::new("cannot send the password").detail(error.to_string())
}

#[cfg(test)]
mod tests;
