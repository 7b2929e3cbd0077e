//! What went wrong, in PostgreSQL's form: message, detail, hint; and the server's SQLSTATE if it said one.

use std::fmt;

use serde::Serialize;

/// An error for people. Messages are lower case and hold the values; the hint says what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Error {
    /// What happened.
    pub message: String,
    /// Facts about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The server's five-character code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sqlstate: Option<String>,
}

/// The result of anything that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Makes an error of a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), detail: None, hint: None, sqlstate: None }
    }

    /// Adds facts.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds what to do.
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
