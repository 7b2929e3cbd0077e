//! Startup and authentication (none, password, MD5, SCRAM-SHA-256) as a state machine without a socket.

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use super::server_error::ServerError;
use crate::error::{Error, Result};

/// Who logs in, and where.
#[derive(Clone, Debug, Default)]
pub struct Login {
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// Password, if one was given.
    pub password: Option<String>,
    /// What `pg_stat_activity` shows.
    pub application_name: String,
    /// Command-line options for the backend (`-c name=value`).
    pub options: Option<String>,
}

/// How far the startup has come.
pub struct Startup<'a> {
    login: &'a Login,
    scram: Option<ScramSha256>,
    is_proven: bool,
    is_admitted: bool,
    /// The server's version, as it reports it.
    pub server_version: String,
    /// The backend's process id.
    pub backend_pid: i32,
}

impl<'a> Startup<'a> {
    /// Begins: writes the startup message to `out`.
    pub fn begin(login: &'a Login, out: &mut BytesMut) -> Result<Self> {
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
                .detail("a name holds a zero byte")
        })?;
        Ok(Self {
            login,
            scram: None,
            is_proven: false,
            is_admitted: false,
            server_version: String::new(),
            backend_pid: 0,
        })
    }

    /// Takes one message; writes the answer, if there is one, to `out`. True when the server is ready.
    pub fn advance(&mut self, message: Message, out: &mut BytesMut) -> Result<bool> {
        match message {
            Message::AuthenticationOk => self.admit()?,
            Message::NoticeResponse(_) => {}
            Message::AuthenticationCleartextPassword => {
                let password = self.password()?;
                frontend::password_message(password.as_bytes(), out).map_err(unencodable)?;
            }
            Message::AuthenticationMd5Password(body) => {
                let hash = md5_hash(self.login.user.as_bytes(), self.password()?.as_bytes(), body.salt());
                frontend::password_message(hash.as_bytes(), out).map_err(unencodable)?;
            }
            Message::AuthenticationSasl(body) => self.begin_scram(&body, out)?,
            Message::AuthenticationSaslContinue(body) => {
                let scram = self.scram()?;
                scram.update(body.data()).map_err(|error| unproven(&error.to_string()))?;
                frontend::sasl_response(scram.message(), out).map_err(unencodable)?;
            }
            Message::AuthenticationSaslFinal(body) => {
                self.scram()?.finish(body.data()).map_err(|error| unproven(&error.to_string()))?;
                self.is_proven = true;
            }
            Message::ParameterStatus(body) => {
                if body.name().is_ok_and(|name| name == "server_version") {
                    self.server_version = body.value().unwrap_or_default().to_string();
                }
            }
            Message::BackendKeyData(body) => self.backend_pid = body.process_id(),
            Message::ReadyForQuery(_) if self.is_admitted => return Ok(true),
            Message::ErrorResponse(body) => return Err(self.refused(&body)),
            Message::ReadyForQuery(_) => {
                return Err(Error::new("the server was ready before it had let anybody in"));
            }
            _ => {
                return Err(Error::new("the server asked for an unknown kind of authentication")
                    .detail("known: none, password, md5, scram-sha-256"));
            }
        }
        Ok(false)
    }

    /// SCRAM is mutual: a server that has not proven to know the password is not the one that was asked for.
    fn admit(&mut self) -> Result<()> {
        if self.scram.is_some() && !self.is_proven {
            return Err(unproven("it ended the login before its proof"));
        }
        self.is_admitted = true;
        Ok(())
    }

    fn begin_scram(
        &mut self,
        body: &postgres_protocol::message::backend::AuthenticationSaslBody,
        out: &mut BytesMut,
    ) -> Result<()> {
        let has_scram = body.mechanisms().any(|name| Ok(name == SCRAM_SHA_256)).unwrap_or(false);
        if !has_scram {
            return Err(Error::new("the server offers no SASL mechanism that we know")
                .detail(format!("known: {SCRAM_SHA_256}")));
        }
        let password = self.password()?.as_bytes().to_vec();
        let scram = self.scram.insert(ScramSha256::new(&password, ChannelBinding::unsupported()));
        frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), out).map_err(unencodable)
    }

    fn scram(&mut self) -> Result<&mut ScramSha256> {
        self.scram.as_mut().ok_or_else(|| Error::new("the server answered a login that was not begun"))
    }

    fn password(&self) -> Result<&str> {
        self.login.password.as_deref().ok_or_else(|| {
            Error::new(format!("the server wants a password for role \"{}\"", self.login.user))
                .hint("set PGPASSWORD; pgdyno hands on what it finds in ~/.pgpass or a service file")
        })
    }

    fn refused(&self, body: &postgres_protocol::message::backend::ErrorResponseBody) -> Error {
        let error = ServerError::of(body);
        error.while_doing(&format!("log in as \"{}\" to \"{}\"", self.login.user, self.login.database))
    }
}

fn unproven(why: &str) -> Error {
    Error::new("the server did not prove that it knows the password").detail(why)
}

#[allow(clippy::needless_pass_by_value)] // it is handed to map_err
fn unencodable(error: std::io::Error) -> Error {
    Error::new("cannot send the password").detail(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_ready_before_it_has_let_anybody_in_is_refused() {
        let login = Login::default();
        let mut out = BytesMut::new();
        let mut startup = Startup::begin(&login, &mut out).unwrap();
        let message = Message::parse(&mut BytesMut::from(&b"Z\0\0\0\x05I"[..])).unwrap().unwrap();
        let error = startup.advance(message, &mut out).unwrap_err();
        assert_eq!(error.message, "the server was ready before it had let anybody in");
    }
}
