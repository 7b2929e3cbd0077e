"""``log_line_prefix`` as a pattern for the beginning of a log's lines."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pgdyno.base.errors import UsageError

_ESCAPE = re.compile(r"%(-?\d+)?(.)", re.DOTALL)
_NAME = r"[^\n]{0,63}"  # a name has at most 63 characters
_TIMESTAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
_ZONE = r"[^ \n]{1,40}"
_PATTERNS = {
    "a": _NAME,
    "u": _NAME,
    "d": _NAME,
    "r": r"[\w.:%\[\]()-]{0,100}",
    "h": r"[\w.:%\[\]-]{0,100}",
    "L": r"[\w.:%\[\]-]{0,100}",
    "b": r"[a-z -]{0,63}?",
    "p": r"\d{1,10}",
    "P": r"\d{0,10}",
    "t": rf"{_TIMESTAMP} {_ZONE}",
    "m": rf"{_TIMESTAMP}\.\d{{3}} {_ZONE}",
    "n": r"\d{1,12}\.\d{3}",
    "i": r"[A-Za-z ]{0,63}?",
    "e": r"[0-9A-Z]{5}",
    "c": r"[0-9a-f]{1,16}\.[0-9a-f]{1,8}",
    "l": r"\d{1,20}",
    "s": rf"{_TIMESTAMP} {_ZONE}",
    "v": r"[\d/-]{0,30}",
    "x": r"\d{1,20}",
    "Q": r"-?\d{1,20}",
}
_NAMES = frozenset("aud")
_SEVERITIES = "DEBUG[1-5]?|INFO|NOTICE|WARNING|LOG|ERROR|FATAL|PANIC"
_PARTS = "DETAIL|HINT|QUERY|CONTEXT|LOCATION|STATEMENT|BACKTRACE"


@dataclass(frozen=True)
class LinePattern:
    """Patterns of a line that begins an entry or a part of one, with the shortest and the longest names.

    Clients choose application, user and database names: a name may look like a severity and a message.
    """

    shortest: re.Pattern[str]
    longest: re.Pattern[str]

    def match(self, line: str) -> re.Match[str] | None:
        """Return the parts of a line; None if it does not match, or matches in two different ways.

        The groups are named after the letters of the prefix's escapes, and ``severity``, ``part``, ``text``.
        """
        found, other = self.shortest.match(line), self.longest.match(line)
        is_certain = found is not None and other is not None and _texts(found) == _texts(other)
        return found if is_certain else None


def prefix_pattern(prefix: str) -> LinePattern:
    """Return the pattern of lines. Raises: UsageError if it does not identify sessions."""
    return LinePattern(_pattern(prefix, "?"), _pattern(prefix, ""))


def _texts(found: re.Match[str]) -> dict[str, str]:
    """Return the groups' texts without padding."""
    return {name: (text or "").strip() for name, text in found.groupdict().items()}


def _pattern(prefix: str, lazy: str) -> re.Pattern[str]:
    pieces, named, is_optional, at = [], set[str](), False, 0
    for found in _ESCAPE.finditer(prefix):
        pieces.append(re.escape(prefix[at : found.start()]))
        at = found.end()
        letter = found[2]
        if letter == "q":
            if not is_optional:
                pieces.append("(?:")  # processes without a session stop here
            is_optional = True
        elif letter in _PATTERNS:
            pieces.append(" *" if found[1] else "")
            # A repeated escape has the same text, except for padding.
            its = _PATTERNS[letter] + (lazy if letter in _NAMES else "")
            pieces.append(f"(?P={letter})" if letter in named else f"(?P<{letter}>{its})")
            pieces.append(" *" if found[1] else "")
            named.add(letter)
        elif letter == "%":
            pieces.append("%")
    pieces.append(re.escape(prefix[at:]))
    if not {"p", "c"} & named:
        raise UsageError(
            f"log_line_prefix = '{prefix}' does not identify sessions",
            detail="it contains neither %p (process ID) nor %c (session ID)",
            hint="set log_line_prefix = '%m [%p] %q%u@%d %a ' and log again, or use csvlog or jsonlog",
        )
    whole = "".join(pieces) + (f")?{lazy}" if is_optional else "")
    return re.compile(rf"{whole}(?:(?P<severity>{_SEVERITIES})|(?P<part>{_PARTS})):  (?P<text>[^\n]*)")
