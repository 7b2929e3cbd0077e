//! Security requirements for a connection, as in libpq: TLS, channel binding, authentication methods.

use std::fmt;

use crate::error::{Error, Result};

/// libpq's `sslmode`. `allow` and `prefer` are not supported: a comparison must not depend on what was
/// negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslMode {
    /// No TLS.
    Disable,
    /// TLS without verification of the server; with a root certificate file, same as `VerifyCa`, as in libpq.
    Require,
    /// The certificate must be signed by a trusted authority.
    VerifyCa,
    /// As `VerifyCa`, and the certificate must match the host name.
    VerifyFull,
}

impl SslMode {
    /// Reads libpq's keyword `sslmode`.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "disable" => Ok(Self::Disable),
            "require" => Ok(Self::Require),
            "verify-ca" => Ok(Self::VerifyCa),
            "verify-full" => Ok(Self::VerifyFull),
            other => Err(Error::new(format!("sslmode \"{other}\" is not supported"))
                .detail("with allow or prefer, the use of TLS would depend on the server")
                .hint("choose disable, require, verify-ca or verify-full")),
        }
    }
}

/// libpq's `channel_binding`: whether SCRAM is bound to its TLS connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Binding {
    /// Never.
    Disable,
    /// If the server offers it.
    #[default]
    Prefer,
    /// Always; any other login is refused.
    Require,
}

impl Binding {
    /// Reads libpq's keyword `channel_binding`.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "disable" => Ok(Self::Disable),
            "prefer" => Ok(Self::Prefer),
            "require" => Ok(Self::Require),
            other => Err(Error::new(format!("channel_binding \"{other}\" is not supported"))
                .hint("choose disable, prefer or require")),
        }
    }
}

/// An authentication method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// No authentication.
    None,
    /// The password in clear text.
    Password,
    /// An MD5 hash of the password.
    Md5,
    /// SCRAM-SHA-256: both sides prove that they know the password.
    ScramSha256,
}

const METHODS: [Method; 4] = [Method::None, Method::Password, Method::Md5, Method::ScramSha256];
/// libpq's methods that are not supported here, but valid in `require_auth`.
const UNSUPPORTED: [&str; 3] = ["gss", "sspi", "oauth"];

impl fmt::Display for Method {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::None => "none",
            Self::Password => "password",
            Self::Md5 => "md5",
            Self::ScramSha256 => "scram-sha-256",
        })
    }
}

/// The accepted authentication methods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Methods(Vec<Method>);

impl Default for Methods {
    fn default() -> Self {
        Self(METHODS.to_vec())
    }
}

impl Methods {
    /// Reads libpq's keyword `require_auth`: accepted methods or, each prefixed with "!", refused ones.
    pub fn parse(text: &str) -> Result<Self> {
        let is_negated = text.starts_with('!');
        let mut named = Vec::new();
        for word in text.split(',') {
            let name = word.strip_prefix('!').unwrap_or(word);
            let method = METHODS.into_iter().find(|method| method.to_string() == name);
            if word.starts_with('!') != is_negated || (method.is_none() && !UNSUPPORTED.contains(&name)) {
                return Err(Error::new(format!(
                    "invalid value for connection keyword require_auth: \"{text}\""
                ))
                .hint("write a comma-separated list of methods, all or none prefixed with \"!\""));
            }
            named.extend(method);
        }
        let accepted: Vec<_> =
            METHODS.into_iter().filter(|method| named.contains(method) != is_negated).collect();
        if accepted.is_empty() {
            return Err(Error::new(format!("require_auth \"{text}\" accepts no supported method"))
                .detail(format!("supported: {}", listed(&METHODS))));
        }
        Ok(Self(accepted))
    }

    /// Refuses a method that is not accepted.
    pub fn require(&self, method: Method) -> Result<()> {
        if self.0.contains(&method) {
            return Ok(());
        }
        let happened = match method {
            Method::None => "the server accepted the client without a password".into(),
            _ => format!("the server requests authentication method {method}"),
        };
        Err(Error::new(happened).detail(format!("require_auth accepts {}", listed(&self.0))))
    }
}

fn listed(methods: &[Method]) -> String {
    methods.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The security of a connection during login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Channel {
    /// A Unix socket, which cannot be eavesdropped on.
    Socket,
    /// TLS, with the server certificate's hash for channel binding, if its algorithm has one.
    Tls(Option<Vec<u8>>),
    /// TCP in clear text.
    Clear {
        /// Whether sslmode=disable was specified.
        is_wanted: bool,
        /// Whether the peer is a loopback address.
        is_loopback: bool,
    },
}

impl Channel {
    /// Refuses to send a password, or a hash of it, over a network without TLS. Over loopback, returns a
    /// note.
    pub fn require_private(&self, method: Method) -> Result<Option<String>> {
        match self {
            Self::Clear { is_wanted: false, is_loopback: false } => {
                Err(Error::new(format!("the server requests authentication method {method} without TLS"))
                    .detail("anyone who can read the network traffic could log in with it")
                    .hint("use sslmode=require, or scram-sha-256 on the server; sslmode=disable allows it"))
            }
            Self::Clear { is_wanted: false, is_loopback: true } => {
                Ok(Some(format!("authentication method {method} without TLS, over the loopback interface")))
            }
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_those_that_are_named_or_all_others() {
        for (text, accepted) in [
            ("scram-sha-256", "scram-sha-256"),
            ("md5,scram-sha-256", "md5, scram-sha-256"),
            ("!password,!md5", "none, scram-sha-256"),
            ("none,gss", "none"),
            ("!gss", "none, password, md5, scram-sha-256"),
        ] {
            assert_eq!(listed(&Methods::parse(text).unwrap().0), accepted, "{text}");
        }
    }

    #[test]
    fn methods_that_are_none_or_mixed_are_refused() {
        for text in ["", "scram", "md5,!password", "!md5,password", "md5,"] {
            let error = Methods::parse(text).unwrap_err();
            let expected = format!("invalid value for connection keyword require_auth: \"{text}\"");
            assert_eq!(error.message, expected);
        }
        let error = Methods::parse("gss").unwrap_err();
        assert_eq!(error.message, "require_auth \"gss\" accepts no supported method");
        assert_eq!(error.detail.unwrap(), "supported: none, password, md5, scram-sha-256");
    }

    #[test]
    fn passwords_are_sent_over_private_connections_only() {
        let refused = Channel::Clear { is_wanted: false, is_loopback: false };
        let error = refused.require_private(Method::Md5).unwrap_err();
        assert_eq!(error.message, "the server requests authentication method md5 without TLS");
        assert!(error.hint.unwrap().ends_with("sslmode=disable allows it"));
        let near = Channel::Clear { is_wanted: false, is_loopback: true };
        let note = near.require_private(Method::Password).unwrap().unwrap();
        assert_eq!(note, "authentication method password without TLS, over the loopback interface");
        for channel in
            [Channel::Socket, Channel::Tls(None), Channel::Clear { is_wanted: true, is_loopback: false }]
        {
            assert_eq!(channel.require_private(Method::Password), Ok(None), "{channel:?}");
        }
    }
}
