"""Texts of servers, hosts and files as a terminal may be given them. Pure.

Each comes from somebody else, and must neither steer the terminal nor look like another text.
"""

from __future__ import annotations

import re
import unicodedata

_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of control characters (C0, DEL, C1), format characters (direction of writing and
others that are not seen), halves of characters, and separators of lines and paragraphs."""

_NOT_ASCII = re.compile(r"[^\n\x20-\x7e]")


def printable(text: str) -> str:
    """Return a text with replacement characters for all that a terminal would act on, but line feeds.

    Tabs become spaces: libpq's messages have some.
    """
    return _NOT_ASCII.sub(_replaced, text.replace("\t", "    "))


def escaped_json(text: str) -> str:
    """Return the text of a JSON document with JSON's escapes for all that is not printable."""
    return _NOT_ASCII.sub(_escaped, text)


def _replaced(match: re.Match[str]) -> str:
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(match[0]) in _STEERING else match[0]


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    escapes = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
    return match[0] if match[0].isprintable() else escapes
