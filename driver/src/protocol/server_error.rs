//! Errors reported by the server, and their fields.

use bytes::{BufMut, BytesMut};
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{ErrorResponseBody, Message};

use crate::error::Error;

/// Undefined table, undefined column.
const UNDEFINED: [&str; 2] = ["42P01", "42703"];

const HOW_TO_LOAD: &str = "load the workload's tables first: pgdyno-driver load WORKLOAD TARGET; the Insert \
                           Benchmark's first step, insert-benchmark-l.i0, creates its own";

/// The used fields of an `ErrorResponse`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// The SQLSTATE, or `XX000` if the server sent none.
    pub code: String,
    /// The primary message.
    pub message: String,
    /// The detail message.
    pub detail: Option<String>,
    /// The server's hint.
    pub hint: Option<String>,
    /// Whether the error ends the connection.
    pub is_fatal: bool,
}

impl ServerError {
    /// Reads the fields of an `ErrorResponse`; omits unreadable ones.
    pub fn of(body: &ErrorResponseBody) -> Self {
        let mut error = Self { code: "XX000".into(), ..Self::default() };
        let mut fields = body.fields();
        while let Ok(Some(field)) = fields.next() {
            let text = String::from_utf8_lossy(field.value_bytes()).into_owned();
            match field.type_() {
                b'C' => error.code = text,
                b'M' => error.message = text,
                b'D' => error.detail = Some(text),
                b'H' => error.hint = Some(text),
                b'V' => error.is_fatal = matches!(text.as_str(), "FATAL" | "PANIC"),
                _ => {}
            }
        }
        error
    }

    /// Reads the raw body of an `ErrorResponse`. Any bytes give a result.
    pub fn parse(body: &[u8]) -> Self {
        let mut message = BytesMut::with_capacity(body.len() + 5);
        message.put_u8(b'E');
        message.put_u32(body.len() as u32 + 4);
        message.put_slice(body);
        match Message::parse(&mut message) {
            Ok(Some(Message::ErrorResponse(body))) => Self::of(&body),
            _ => Self { code: "XX000".into(), message: "an unreadable error".into(), ..Self::default() },
        }
    }

    /// Converts it into an `Error`; `doing` names the failed action.
    pub fn while_doing(self, doing: &str) -> Error {
        let mut error = Error::new(format!("could not {doing}: {}", self.message)).sqlstate(self.code);
        error.detail = self.detail;
        error.hint = self.hint;
        error
    }

    /// As `while_doing`, for an action that needs the workload's tables: adds a hint if they are missing.
    pub fn while_using_tables(mut self, doing: &str) -> Error {
        if UNDEFINED.contains(&self.code.as_str()) {
            self.hint = Some(HOW_TO_LOAD.into());
        }
        self.while_doing(doing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_of_an_error_are_found() {
        let error = ServerError::parse(b"SERROR\0VERROR\0C40001\0Mcould not serialize\0Hretry\0\0");
        assert_eq!((error.code.as_str(), error.message.as_str()), ("40001", "could not serialize"));
        assert_eq!(error.hint.as_deref(), Some("retry"));
        assert!(!error.is_fatal);
    }

    #[test]
    fn an_error_is_fatal_whatever_the_language_of_the_server() {
        assert!(ServerError::parse(b"SSCHWERWIEGEND\0VFATAL\0C57P01\0Mbeendet\0\0").is_fatal);
    }

    #[test]
    fn a_missing_table_is_answered_with_how_to_load_it() {
        let error = ServerError { code: "42P01".into(), ..ServerError::default() };
        let hint = error.clone().while_using_tables("run x").hint.unwrap();
        assert!(hint.contains("pgdyno-driver load"), "{hint}");
        assert_eq!(error.while_doing("run x").hint, None);
    }

    proptest! {
        #[test]
        fn no_body_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = ServerError::parse(&bytes);
        }
    }
}
