"""Texts that a hostile server or host could tell: each means something in a language that formats write."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pgdyno.base.errors import FormatError, PgdynoError

HOSTILE = (
    "", " ", " leading", "trailing ", "\ttab\t", "x" * 20_000, "a b " * 500, "é € 🐘", "\U0010fffd",
    "'", '"', "''", '"""', "it's", '"; id; "', "`id`", "$(id)", "${IFS}", "$HOME", "a; id", "a && id",
    "\\", "\\\\", "ends with \\", "\\n", "\\x41", "\\'", '\\"', "E'\\\\'", "'; DROP TABLE t; --", "$$", "$1",
    "a\nb", "a\rb", "a\r\nb", "\n", "\n# x", "a\x0bb", "a\x0cb", "a\x85b", "a\u2028b", "a\u2029b",
    "nul \0", "\x01", "\x1b[2J", "\x1b]0;title\x07", "\x7f", "\x9b31m", "\u202eabc", "\u2066a\u2069",
    "\ufeffbom", "\u200b", "\u00a0", "\ud800", "\udc80", "\uffff",
    "{{ lookup('pipe', 'id') }}", "{{ 1 + 1 }}", "{% raw %}", "{% endraw %}{{ 2 }}", "{# note #}", "{{", "}}",
    '${file("/etc/passwd")}', "%{ for x in [1] }", "$${x}", "%%{x}", "$$${x}", "${", "%{", '18.1" }\nx "y" {',
    "<<EOT", "%n", "%%", "%i %u", "%", "$$$", "${f:exec:id}", "\\${x}",
    "#", "# x", "a # b", "a #b", ";", "; x", "//", "/* x */", "--", "-- x", "-", "- x", "? x", ": x", "a: b",
    "!unsafe", "!!python/object/apply:os.system [id]", "&anchor", "*alias", "<<", "---", "...", "|", ">",
    "@x", "a | id", "[a]", "{a: b}", "[main]",
    "include 'x'", "include=evil", "=x", "a = b", "a=b", "^;^", "a;b=c", "@/etc/passwd",
    "on", "off", "yes", "y", "null", "~", "15:00", "0o17", "010", "1e3", "0x10", ".inf", "2001-01-01",
)  # fmt: skip


def outcome(write: Callable[[], str]) -> str | PgdynoError:
    """Return what is written, or the error with which it is refused."""
    try:
        return write()
    except PgdynoError as error:
        return error


def expressible(quote: Callable[[str], str]) -> dict[str, str]:
    """Return each text that a language can express, with its quoted form; all others are refused in words."""
    found = {}
    for text in HOSTILE:
        result = outcome(partial(quote, text))
        if isinstance(result, str):
            found[text] = result
            continue
        assert isinstance(result, FormatError)
        assert result.message.startswith('cannot write "')
        assert result.message.isprintable()
        assert result.detail
    return found


def is_utf8_without_nul(text: str) -> bool:
    """Whether any quoted text can be written and read at all."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


WRITABLE = tuple(filter(is_utf8_without_nul, HOSTILE))
