//! Output to the terminal. Texts may contain untrusted text from servers.

use std::fmt::Display;
use std::io::{self, Write};

use crate::error::{Error, Result};

/// Writes a printable form of a text to standard error.
pub fn print_stderr(text: &dyn Display) {
    // If standard error is closed, only the exit status remains.
    let _ = writeln!(io::stderr(), "{}", printable(&text.to_string()));
}

/// Writes lines to standard output unchanged: JSON, or text that is already printable.
pub fn print_lines(lines: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{lines}")
        .and_then(|()| out.flush())
        .map_err(|error| Error::new(format!("could not print results: {error}")))
}

/// Replaces all characters that control a terminal, except line feeds. Tabs become spaces.
pub fn printable(text: &str) -> String {
    let spaced = text.replace('\t', "    ");
    spaced.chars().map(|c| if c != '\n' && is_control(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Whether a character is a Unicode control or format character, or a line separator.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}'
            | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}' | '\u{e0020}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn what_a_terminal_would_act_on_is_replaced() {
        for steering in [
            "\u{7}", "\u{1b}", "\r", "\u{7f}", "\u{9b}", "\u{9d}", "\u{200f}", "\u{202e}", "\u{2066}",
            "\u{2028}",
        ] {
            assert_eq!(printable(&format!("a{steering}b")), "a\u{fffd}b");
        }
    }

    #[test]
    fn the_rest_is_left() {
        for plain in ["ERROR: no \"x\"\ndetail: y", "é € 🐘", "10\u{202f}000"] {
            assert_eq!(printable(plain), plain);
        }
    }
}
