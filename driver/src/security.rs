//! How safe a connection has to be, in libpq's words: TLS, channel binding, ways to log in.

use std::fmt;

use crate::error::{Error, Result};

/// How much TLS is wanted, as libpq names it. `allow` and `prefer` are not offered: a comparison must not
/// depend on what was negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslMode {
    /// No TLS.
    Disable,
    /// TLS without checking who answers; with a file of trusted certificates it is `VerifyCa`, as in libpq.
    Require,
    /// The certificate must be signed by a known authority.
    VerifyCa,
    /// And be made out to the host's name.
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
                .detail("with allow and prefer, whether TLS is measured would depend on the server")
                .hint("choose disable, require, verify-ca or verify-full")),
        }
    }
}

/// Whether a login by SCRAM has to be bound to its TLS connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Binding {
    /// Never.
    Disable,
    /// If the server offers it.
    #[default]
    Prefer,
    /// Always; no other login will do.
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

/// A way to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The server asks for nothing.
    None,
    /// The password itself is sent.
    Password,
    /// A hash by MD5 is sent.
    Md5,
    /// Both sides prove that they know the password.
    ScramSha256,
}

const METHODS: [Method; 4] = [Method::None, Method::Password, Method::Md5, Method::ScramSha256];
/// Methods of libpq that this program does not have: naming them in `require_auth` is no mistake.
const NEVER_DONE: [&str; 3] = ["gss", "sspi", "oauth"];

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

/// The ways to log in that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Methods(Vec<Method>);

impl Default for Methods {
    fn default() -> Self {
        Self(METHODS.to_vec())
    }
}

impl Methods {
    /// Reads libpq's keyword `require_auth`: methods that are accepted, or, each with "!", those that are not.
    pub fn parse(text: &str) -> Result<Self> {
        let is_negated = text.starts_with('!');
        let mut named = Vec::new();
        for word in text.split(',') {
            let name = word.strip_prefix('!').unwrap_or(word);
            let method = METHODS.into_iter().find(|method| method.to_string() == name);
            if word.starts_with('!') != is_negated || (method.is_none() && !NEVER_DONE.contains(&name)) {
                return Err(Error::new(format!(
                    "connection keyword require_auth has no valid value: \"{text}\""
                ))
                .hint("write methods with commas between them, all or none of them with \"!\" before it"));
            }
            named.extend(method);
        }
        let accepted: Vec<_> =
            METHODS.into_iter().filter(|method| named.contains(method) != is_negated).collect();
        if accepted.is_empty() {
            return Err(Error::new(format!("require_auth \"{text}\" leaves no way to log in"))
                .detail(format!("pgdyno-driver knows {}", listed(&METHODS))));
        }
        Ok(Self(accepted))
    }

    /// Refuses a method that is not accepted.
    pub fn require(&self, method: Method) -> Result<()> {
        if self.0.contains(&method) {
            return Ok(());
        }
        let happened = match method {
            Method::None => "the server let the client in without a password".into(),
            _ => format!("the server asks for authentication by {method}"),
        };
        Err(Error::new(happened).detail(format!("require_auth accepts {}", listed(&self.0))))
    }
}

fn listed(methods: &[Method]) -> String {
    methods.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The connection that a login is made on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Channel {
    /// A Unix socket, on which nobody can listen.
    Socket,
    /// TLS, with the server certificate's hash for channel binding, if there is one that both sides know.
    Tls(Option<Vec<u8>>),
    /// TCP in clear text.
    Clear {
        /// Whether sslmode=disable was written.
        is_wanted: bool,
        /// Whether it ends on this machine.
        is_loopback: bool,
    },
}

impl Channel {
    /// Refuses to send a password, or a hash of it, over a network without TLS. Over the loopback, returns a note.
    pub fn require_private(&self, method: Method) -> Result<Option<String>> {
        match self {
            Self::Clear { is_wanted: false, is_loopback: false } => {
                Err(Error::new(format!("the server asks for authentication by {method} without TLS"))
                    .detail("anyone who reads the network's traffic could log in with it")
                    .hint("use sslmode=require, or scram-sha-256 on the server; sslmode=disable allows it"))
            }
            Self::Clear { is_wanted: false, is_loopback: true } => {
                Ok(Some(format!("authentication by {method} without TLS, over this machine's own loopback")))
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
            let expected = format!("connection keyword require_auth has no valid value: \"{text}\"");
            assert_eq!(error.message, expected);
        }
        let error = Methods::parse("gss").unwrap_err();
        assert_eq!(error.message, "require_auth \"gss\" leaves no way to log in");
        assert_eq!(error.detail.unwrap(), "pgdyno-driver knows none, password, md5, scram-sha-256");
    }

    #[test]
    fn passwords_are_sent_where_nobody_else_reads_them() {
        let refused = Channel::Clear { is_wanted: false, is_loopback: false };
        let error = refused.require_private(Method::Md5).unwrap_err();
        assert_eq!(error.message, "the server asks for authentication by md5 without TLS");
        assert!(error.hint.unwrap().ends_with("sslmode=disable allows it"));
        let near = Channel::Clear { is_wanted: false, is_loopback: true };
        let note = near.require_private(Method::Password).unwrap().unwrap();
        assert_eq!(note, "authentication by password without TLS, over this machine's own loopback");
        for channel in
            [Channel::Socket, Channel::Tls(None), Channel::Clear { is_wanted: true, is_loopback: false }]
        {
            assert_eq!(channel.require_private(Method::Password), Ok(None), "{channel:?}");
        }
    }
}
