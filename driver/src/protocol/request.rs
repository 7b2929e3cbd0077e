//! Writes the requests for a transaction's calls, in each of the four modes.
//!
//! As in libpq, each execution includes Describe, so the server does the same work as for other clients.

use serde::Deserialize;

use crate::workload::{Call, Statement, StatementKind, Transaction};

/// Query protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Simple query, with parameters as literals.
    Simple,
    /// Extended query, parsed for every execution.
    Extended,
    /// Extended query, prepared once per connection.
    #[default]
    Prepared,
    /// As prepared, with each transaction sent as one pipeline.
    Pipelined,
}

/// Writes the request for one call, with a Sync if needed: its answers end with one `ReadyForQuery`.
pub fn write_call(
    out: &mut Vec<u8>,
    mode: Mode,
    statements: &[Statement],
    transaction: &Transaction,
    call: &Call,
) {
    if is_text(mode, statements, call) {
        write_query(out, statements, transaction, call);
    } else {
        write_execution(out, mode, statements, transaction, call);
        write_message(out, b'S', |_| {});
    }
}

/// Writes all calls as one pipeline and returns the number of `ReadyForQuery` messages to expect.
pub fn write_pipeline(out: &mut Vec<u8>, statements: &[Statement], transaction: &Transaction) -> usize {
    let mut ends = 0;
    let mut is_open = false;
    for call in transaction.calls() {
        if is_text(Mode::Pipelined, statements, call) {
            if is_open {
                write_message(out, b'S', |_| {});
                ends += 1;
            }
            write_query(out, statements, transaction, call);
            ends += 1;
            is_open = false;
        } else {
            write_execution(out, Mode::Pipelined, statements, transaction, call);
            is_open = true;
        }
    }
    if is_open {
        write_message(out, b'S', |_| {});
        ends += 1;
    }
    ends
}

/// Writes a simple query.
pub fn write_text(out: &mut Vec<u8>, sql: &str) {
    write_message(out, b'Q', |out| cstring(out, sql.as_bytes()));
}

/// Writes a Parse that names the statement by its index.
pub fn write_parse(out: &mut Vec<u8>, index: usize, statement: &Statement) {
    write_message(out, b'P', |out| {
        name(out, index);
        text_and_types(out, statement);
    });
}

/// Writes a Sync.
pub fn write_sync(out: &mut Vec<u8>) {
    write_message(out, b'S', |_| {});
}

fn is_text(mode: Mode, statements: &[Statement], call: &Call) -> bool {
    mode == Mode::Simple || statements[call.statement].kind == StatementKind::Unprepared
}

fn write_query(out: &mut Vec<u8>, statements: &[Statement], transaction: &Transaction, call: &Call) {
    let statement = &statements[call.statement];
    write_message(out, b'Q', |out| {
        let mut arguments = transaction.arguments(call);
        if statement.kind == StatementKind::Unprepared {
            out.extend_from_slice(arguments.next().flatten().unwrap_or_default());
        } else {
            let arguments: Vec<Option<&[u8]>> = arguments.collect();
            interpolate(out, statement, &arguments);
        }
        out.push(0);
    });
}

fn write_execution(
    out: &mut Vec<u8>,
    mode: Mode,
    statements: &[Statement],
    transaction: &Transaction,
    call: &Call,
) {
    if mode == Mode::Extended {
        write_message(out, b'P', |out| {
            out.push(0); // the unnamed statement
            text_and_types(out, &statements[call.statement]);
        });
    }
    write_message(out, b'B', |out| {
        out.push(0); // the unnamed portal
        if mode == Mode::Extended {
            out.push(0); // the unnamed statement
        } else {
            name(out, call.statement);
        }
        out.extend_from_slice(&0u16.to_be_bytes()); // all parameters are text
        let arguments = transaction.arguments(call);
        out.extend_from_slice(&(arguments.len() as u16).to_be_bytes());
        for argument in arguments {
            let length = argument.map_or(u32::MAX, |argument| argument.len() as u32); // −1: NULL
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(argument.unwrap_or_default());
        }
        let format = u16::from(statements[call.statement].has_binary_results);
        out.extend_from_slice(&[0, 1]); // one format for all result columns
        out.extend_from_slice(&format.to_be_bytes());
    });
    write_message(out, b'D', |out| out.extend_from_slice(b"P\0"));
    write_message(out, b'E', |out| out.extend_from_slice(&[0, 0, 0, 0, 0])); // no row limit
}

/// Writes a statement with `$n` replaced by literals, except inside quotes and names (`a$1`). Quotes in
/// literals are doubled; backslashes are plain characters because `standard_conforming_strings` is on.
fn interpolate(out: &mut Vec<u8>, statement: &Statement, arguments: &[Option<&[u8]>]) {
    let mut rest = statement.sql.as_bytes();
    let mut quote = None;
    let mut is_in_name = false;
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'$' && quote.is_none() && !is_in_name {
            let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let number = std::str::from_utf8(&after[..digits]).ok().and_then(|n| n.parse::<usize>().ok());
            let index = number.and_then(|number| number.checked_sub(1));
            if let Some(argument) = index.and_then(|index| arguments.get(index)) {
                literal(out, *argument, statement.quotes_numbers);
                rest = &after[digits..];
                continue;
            }
        }
        match quote {
            Some(open) if open == byte => quote = None,
            None if matches!(byte, b'\'' | b'"') => quote = Some(byte),
            _ => {}
        }
        is_in_name = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
        out.push(byte);
        rest = after;
    }
}

fn literal(out: &mut Vec<u8>, argument: Option<&[u8]>, quotes_numbers: bool) {
    let Some(argument) = argument else { return out.extend_from_slice(b"NULL") };
    let is_integer = !argument.is_empty()
        && argument.iter().enumerate().all(|(at, byte)| byte.is_ascii_digit() || (at == 0 && *byte == b'-'));
    if is_integer && !quotes_numbers {
        out.extend_from_slice(argument);
        return;
    }
    out.push(b'\'');
    for byte in argument {
        if *byte == b'\'' {
            out.push(b'\'');
        }
        out.push(*byte);
    }
    out.push(b'\'');
}

/// Writes the name of a prepared statement.
fn name(out: &mut Vec<u8>, index: usize) {
    out.push(b's');
    cstring(out, itoa::Buffer::new().format(index).as_bytes());
}

fn text_and_types(out: &mut Vec<u8>, statement: &Statement) {
    cstring(out, statement.sql.as_bytes());
    out.extend_from_slice(&(statement.parameter_types.len() as u16).to_be_bytes());
    for oid in statement.parameter_types {
        out.extend_from_slice(&oid.to_be_bytes());
    }
}

fn write_message(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn cstring(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements() -> Vec<Statement> {
        vec![
            Statement::prepared("read", "SELECT a FROM t WHERE id=$1 AND b=$2"),
            Statement::unprepared("text"),
        ]
    }

    fn tags(mut bytes: &[u8]) -> String {
        let mut tags = String::new();
        while let Some((tag, rest)) = bytes.split_first() {
            tags.push(*tag as char);
            let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
            bytes = &rest[length..];
        }
        tags
    }

    #[test]
    fn each_mode_sends_its_messages() {
        let mut transaction = Transaction::default();
        transaction.call(0).int(7).text(|text| text.extend_from_slice(b"it's"));
        for (mode, expected) in [(Mode::Simple, "Q"), (Mode::Extended, "PBDES"), (Mode::Prepared, "BDES")] {
            let mut out = Vec::new();
            write_call(&mut out, mode, &statements(), &transaction, &transaction.calls()[0]);
            assert_eq!(tags(&out), expected, "{mode:?}");
        }
    }

    #[test]
    fn simple_mode_quotes_text_and_not_integers() {
        let mut transaction = Transaction::default();
        transaction.call(0).int(-7).text(|text| text.extend_from_slice(b"it's"));
        let mut out = Vec::new();
        write_call(&mut out, Mode::Simple, &statements(), &transaction, &transaction.calls()[0]);
        assert_eq!(&out[5..], b"SELECT a FROM t WHERE id=-7 AND b='it''s'\0");
    }

    #[test]
    fn simple_mode_leaves_quoted_texts_and_names_as_they_are() {
        let sql = "SELECT '$1', 'it''s $1', \"$1\", a$1, é$1, $1, ($2), $3, $ FROM t";
        let statement = Statement { quotes_numbers: true, ..Statement::prepared("read", sql) };
        let mut out = Vec::new();
        interpolate(&mut out, &statement, &[Some(b"5"), None]);
        let sent = "SELECT '$1', 'it''s $1', \"$1\", a$1, é$1, '5', (NULL), $3, $ FROM t";
        assert_eq!(String::from_utf8(out).unwrap(), sent);
    }

    #[test]
    fn a_pipeline_has_one_sync_and_one_more_around_each_text() {
        let mut transaction = Transaction::default();
        transaction.call(0).int(1).int(2);
        transaction.call(0).int(3).int(4);
        transaction.call(1).text(|text| text.extend_from_slice(b"SELECT 1"));
        transaction.call(0).int(5).int(6);
        let mut out = Vec::new();
        let ends = write_pipeline(&mut out, &statements(), &transaction);
        assert_eq!((tags(&out).as_str(), ends), ("BDEBDESQBDES", 3));
    }
}
