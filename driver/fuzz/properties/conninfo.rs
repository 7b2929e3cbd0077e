//! Connection strings.

use std::fmt::Write;

use pgdyno_driver::conninfo::Keywords;

/// Keywords that were read are read again from a string with them; what is resolved has a place.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(found) = Keywords::parse(text) else { return };
    if found.0.keys().all(|name| is_word(name)) {
        assert_eq!(Keywords::parse(&written(&found)).unwrap().0, found.0);
    }
    if let Ok(info) = found.resolve() {
        assert!(info.port > 0 && !info.place().is_empty());
    }
}

/// A URI's options may have other names, which no `keyword=value` can have.
fn is_word(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c == '=' || c.is_whitespace())
}

fn written(keywords: &Keywords) -> String {
    let mut text = String::from(" "); // not a URI, whatever its first keyword is
    for (name, value) in &keywords.0 {
        let _ = write!(text, "{name}='{}' ", value.replace('\\', r"\\").replace('\'', r"\'"));
    }
    text
}
