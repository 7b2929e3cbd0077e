"""Words in sentences and lists, mistyped names, and texts made safe for a terminal. Pure.

Texts from servers, hosts and files are untrusted: they must not control the terminal or disguise themselves
as other text.
"""

from __future__ import annotations

import difflib
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence

_CONTROL = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of control characters (C0, DEL, C1), format characters (writing direction and other
invisible ones), surrogates, and separators of lines and paragraphs."""

_NOT_ASCII = re.compile(r"[^\n\x20-\x7e]")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the known name most similar to ``name``; empty if none is similar."""
    similar = difflib.get_close_matches(name, tuple(known), n=1)
    return f'did you mean "{similar[0]}"? ' if similar else ""


def sentence(words: str) -> str:
    """Return words with a capital first letter; the name of a setting keeps its spelling."""
    first = words.partition(" ")[0].rstrip(",;:")
    return f"{words[:1].upper()}{words[1:]}" if first.replace("-", "").isalpha() else words


def lower_first(words: str) -> str:
    """Return words for use within a sentence."""
    return f"{words[:1].lower()}{words[1:]}"


def listed(names: Sequence[str]) -> str:
    """Return ``a``, ``a and b`` or ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, which gets an s unless the count is 1."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def shortened(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters; an ellipsis stands for the rest."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def aligned(rows: Sequence[Sequence[str]], indent: str = "") -> list[str]:
    """Return a line for each row, with its cells in columns. Shapes: all rows have the same length."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)) for row in rows)
    return [f"{indent}{line}".rstrip() for line in lines]


def wrapped(text: str, width: int, indent: str = "", hanging: str = "    ") -> str:
    """Return a text in lines of ``width`` characters; those after the first are indented by ``hanging`` more.

    Words that are too long, such as paths, and words with hyphens are not broken.
    """
    return textwrap.fill(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_on_hyphens=False,
        break_long_words=False,
    )


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
