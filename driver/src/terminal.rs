//! The one way in which texts reach a terminal: servers say what is in them.

use std::fmt::Display;
use std::io::{self, Write};

use crate::error::{Error, Result};

/// Writes a text to the standard error.
pub fn say(text: &dyn Display) {
    // If nobody reads any more, the exit status has to do.
    let _ = writeln!(io::stderr(), "{}", printable(&text.to_string()));
}

/// Writes lines to the standard output, as they are: JSON for programs, or what is printable.
pub fn print_lines(lines: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{lines}")
        .and_then(|()| out.flush())
        .map_err(|error| Error::new(format!("could not print results: {error}")))
}

/// Replaces all that a terminal would act on, but line feeds: servers say what is in the texts. Tabs become spaces.
pub fn printable(text: &str) -> String {
    let spaced = text.replace('\t', "    ");
    spaced.chars().map(|c| if c != '\n' && steers(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Whether Unicode calls a character a control or format character, or a separator of lines.
fn steers(c: char) -> bool {
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
