//! Errors in PostgreSQL's form: message, detail, hint, and the server's SQLSTATE if it sent one.

use std::fmt;

use serde::Serialize;

/// A user-facing error. Messages are lower case and contain the values; hints propose a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Error {
    /// What happened.
    pub message: String,
    /// Facts about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// A remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The server's five-character error code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sqlstate: Option<String>,
}

/// A result with this error type.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates an error with a message only.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), detail: None, hint: None, sqlstate: None }
    }

    /// Adds facts.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds a remedy.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the server's code.
    #[must_use]
    pub fn sqlstate(mut self, code: impl Into<String>) -> Self {
        self.sqlstate = Some(code.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "error: {}", self.message)?;
        if let Some(code) = &self.sqlstate {
            write!(out, " (SQLSTATE {code})")?;
        }
        if let Some(detail) = &self.detail {
            write!(out, "\ndetail: {detail}")?;
        }
        if let Some(hint) = &self.hint {
            write!(out, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
