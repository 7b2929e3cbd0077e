//! Errors of servers.

use pgdyno_driver::protocol::server_error::ServerError;

/// Any body is an error with a text; the fields that were read are read again from a body with them.
pub fn check(data: &[u8]) {
    let error = ServerError::parse(data);
    assert_eq!(ServerError::parse(&written(&error)), error);
    let shown = error.clone().while_using_tables("run").to_string();
    assert!(shown.starts_with(&format!("error: could not run: {}", error.message)));
}

fn written(error: &ServerError) -> Vec<u8> {
    let mut body = Vec::new();
    let severity = if error.is_fatal { "FATAL" } else { "ERROR" };
    let fields = [
        (b'V', Some(severity)),
        (b'C', Some(error.code.as_str())),
        (b'M', Some(error.message.as_str())),
        (b'D', error.detail.as_deref()),
        (b'H', error.hint.as_deref()),
    ];
    for (field, value) in fields {
        let Some(value) = value else { continue };
        body.push(field);
        body.extend_from_slice(value.as_bytes());
        body.push(0);
    }
    body.push(0);
    body
}
