//! Parser for libpq connection strings: URIs and `keyword=value` pairs. It does not interpret the keywords.

use std::collections::BTreeMap;

use crate::error::{Error, Result};

/// The supported keywords.
pub(crate) const KNOWN: &str = "host, port, user, password, dbname, hostaddr, sslmode, sslrootcert, sslcert, \
                                sslkey, sslnegotiation, gssencmode, channel_binding, require_auth, \
                                application_name, connect_timeout, options";
const HOW_TO_WRITE: &str = "write postgresql://user@host:port/dbname or host=… port=… user=… dbname=…";

/// Reads a URI or a `keyword=value` string.
pub fn parse(text: &str) -> Result<BTreeMap<String, String>> {
    match text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://")) {
        Some(rest) => parse_uri(rest),
        None => parse_pairs(text),
    }
}

fn parse_uri(rest: &str) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let (main, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (place, database) = main.split_once('/').unwrap_or((main, ""));
    let (account, address) = match place.rsplit_once('@') {
        Some((account, address)) => (account, address),
        None => ("", place),
    };
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    let (host, port) = split_address(address)?;
    for (name, value) in
        [("user", user), ("password", password), ("host", host), ("port", port), ("dbname", database)]
    {
        if !value.is_empty() {
            found.insert(name.to_string(), percent_decode(value)?);
        }
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) =
            pair.split_once('=').ok_or_else(|| malformed("a parameter after \"?\" has no value"))?;
        found.insert(percent_decode(name)?, percent_decode(value)?);
    }
    Ok(found)
}

fn split_address(address: &str) -> Result<(&str, &str)> {
    if address.contains(',') {
        return Err(Error::new("a URI with several hosts is not supported")
            .hint("specify only the server to measure"));
    }
    if let Some(rest) = address.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or_else(|| malformed("unterminated \"[\""))?;
        return Ok((host, port.strip_prefix(':').unwrap_or("")));
    }
    Ok(address.split_once(':').unwrap_or((address, "")))
}

fn parse_pairs(text: &str) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut last = None;
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = split_keyword(rest).ok_or_else(|| no_keyword(last))?;
        let (value, after) = take_value(after.trim_start())?;
        found.insert(name.to_string(), value);
        last = KNOWN.split(", ").find(|known| *known == name).or(last);
        rest = after.trim_start();
    }
    Ok(found)
}

/// Splits off a keyword (a single word) from the text after its `=`.
fn split_keyword(text: &str) -> Option<(&str, &str)> {
    let (name, after) = text.split_once('=')?;
    let name = name.trim_end();
    (!name.is_empty() && !name.contains(char::is_whitespace)).then_some((name, after))
}

/// Splits off one value, with libpq's quoting: `'` as the quote, `\` as the escape character.
fn take_value(text: &str) -> Result<(String, &str)> {
    let is_quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut characters = text.char_indices().skip(usize::from(is_quoted));
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.push(characters.next().ok_or_else(|| malformed("it ends with \"\\\""))?.1),
            '\'' if is_quoted => return Ok((value, &text[at + 1..])),
            c if !is_quoted && c.is_whitespace() => return Ok((value, &text[at..])),
            c => value.push(c),
        }
    }
    if is_quoted { Err(malformed("unterminated quoted value")) } else { Ok((value, "")) }
}

fn percent_decode(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digits = rest.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let decoded = digits.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        bytes.push(decoded.ok_or_else(|| malformed("\"%\" is not followed by two hexadecimal digits"))?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| malformed("it is not valid UTF-8"))
}

/// The error omits the string, which may contain a password.
fn malformed(why: &'static str) -> Error {
    Error::new(format!("invalid connection string: {why}")).hint(HOW_TO_WRITE)
}

/// Names the last known keyword, and omits the rest of the string: it may be part of a password.
fn no_keyword(last: Option<&str>) -> Error {
    let Some(last) = last else { return malformed("it is neither a URI nor keyword=value pairs") };
    Error::new(format!("invalid connection string after keyword \"{last}\""))
        .detail("its value is not followed by another keyword and \"=\"")
        .hint(format!("quote a value that contains spaces, {last}='…'; {HOW_TO_WRITE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_string_does_not_show_the_password() {
        let after = |keyword| format!("invalid connection string after keyword \"{keyword}\"");
        let because = |why| format!("invalid connection string: {why}");
        for (text, expected) in [
            ("password=my secret", after("password")),
            ("host=h password=my secret user=ann", after("password")),
            ("password=my se=cret secret", after("password")),
            ("secret", because("it is neither a URI nor keyword=value pairs")),
            ("password='secret", because("unterminated quoted value")),
            ("postgresql://ann:%secret@h/d", because("\"%\" is not followed by two hexadecimal digits")),
            ("postgresql://ann:my?secret@h/d", because("a parameter after \"?\" has no value")),
            ("postgresql://ann@[secret/d", because("unterminated \"[\"")),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.message, expected, "{text}");
            assert!(!error.to_string().contains("cret"), "{error}");
        }
        let hint = parse("password=my secret").unwrap_err().hint.unwrap();
        assert!(hint.starts_with("quote a value that contains spaces, password='…'; "), "{hint}");
    }
}
