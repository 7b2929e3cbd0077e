"""Sanitise texts from servers, hosts and files for output on a terminal. Pure.

These texts are untrusted: they must not control the terminal or disguise themselves as other text.
"""

from __future__ import annotations

import re
import unicodedata

_CONTROL = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of control characters (C0, DEL, C1), format characters (writing direction and other
invisible ones), surrogates, and separators of lines and paragraphs."""

_NOT_ASCII = re.compile(r"[^\n\x20-\x7e]")


def printable(text: str) -> str:
    """Return a text with replacement characters for all control characters except line feeds.

    Tabs become spaces: libpq's messages contain some.
    """
    return _NOT_ASCII.sub(_replaced, text.replace("\t", "    "))


def escaped_json(text: str) -> str:
    """Return the text of a JSON document with JSON escapes for all unprintable characters."""
    return _NOT_ASCII.sub(_escaped, text)


def _replaced(match: re.Match[str]) -> str:
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(match[0]) in _CONTROL else match[0]


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    escapes = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
    return match[0] if match[0].isprintable() else escapes
