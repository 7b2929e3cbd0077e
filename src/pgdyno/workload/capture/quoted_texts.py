"""Texts in quotation marks, as statements have them: read and written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_ESCAPED = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_MARKS = re.compile(r"''|'[ \t\r\f\v]*+\n\s*+'")  # doubled, or where a text goes on in another line
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_MOST_UNICODE = 0x10FFFF
_SPECIAL = re.compile(r'(["\\])')


def quoted_text(text: str | None) -> str:
    """Return a constant of any type for a text; None is NULL.

    With a backslash it is an escape string, which is the same whatever standard_conforming_strings is.
    """
    if text is None:
        return "NULL"
    doubled = text.replace("'", "''")
    return f"E'{doubled.replace(chr(92), chr(92) * 2)}'" if "\\" in doubled else f"'{doubled}'"


def array_text(elements: Iterable[str]) -> str:
    """Return the text of an array."""
    return f"{{{','.join(_element(one) for one in elements)}}}"


def unquoted_text(text: str) -> str:
    """Return the text that a constant in quotation marks stands for."""
    return "".join(_parts(text))


def _element(text: str) -> str:
    return '"' + _SPECIAL.sub(r"\\\1", text) + '"'


def _parts(text: str) -> Iterator[str]:
    """Yield the pieces of a text in quotation marks."""
    if text.startswith("$"):
        quote = text[: text.index("$", 1) + 1]
        yield text[len(quote) : -len(quote)]
        return
    prefix = text[: text.index("'")].lower()
    inner = text[len(prefix) + 1 : -1]
    if prefix in {"b", "x"}:
        yield prefix
    if prefix == "e":
        yield _paired(_ESCAPED.sub(_unescaped, inner.replace("''", "'")))
    else:
        yield _MARKS.sub(lambda found: "'" if found[0] == "''" else "", inner)


def _paired(text: str) -> str:
    """Return a text whose surrogates are the characters that they stand for in pairs."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _unescaped(found: re.Match[str]) -> str:
    octal, hexadecimal, short, long, letter = found.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    code = int(octal, 8) & 0xFF if octal else int(hexadecimal or short or long, 16)
    return chr(code) if 0 < code <= _MOST_UNICODE else ""
