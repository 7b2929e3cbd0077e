"""``log_line_prefix`` as a pattern for the beginning of a log's lines."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

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
UNKNOWN = "[unknown]"
"""The names of a session that has not logged in yet."""
_SEVERITIES = "DEBUG[1-5]?|INFO|NOTICE|WARNING|LOG|ERROR|FATAL|PANIC"
_PARTS = "DETAIL|HINT|QUERY|CONTEXT|LOCATION|STATEMENT|BACKTRACE"
_SUCCESS = "00000: "  # the SQLSTATE of messages about statements, with log_error_verbosity = verbose
_ENGLISH = rf"(?:(?P<severity>{_SEVERITIES})|(?P<part>{_PARTS})):  (?:{_SUCCESS})?(?P<text>[^\n]*)"
_OF_ANY_LANGUAGE = rf"(?:{_SEVERITIES}|{_PARTS}|(?P<word>[^\W\d_]{{2,20}}) ?):  "
_BEGINNING = re.compile(rf"[^\n]{{0,300}}?\b(?:{_SEVERITIES}|{_PARTS}):(?=  )")
_MOST_NAMES = 10_000  # kept between lines: arbitrary


@dataclass(frozen=True)
class _Readings:
    """A line read with the shortest and with the longest names, and the groups that both must agree on."""

    shortest: re.Pattern[str]
    longest: re.Pattern[str]
    groups: frozenset[str]

    def agree(self, found: re.Match[str], line: str) -> bool:
        """Whether the reading ``found`` with the shortest names is the only one."""
        other = self.longest.match(line)
        return other is not None and all(
            (found[name] or "").strip() == (other[name] or "").strip() for name in self.groups
        )


@dataclass(frozen=True)
class LinePattern:
    """Pattern of a line that begins an entry or a part of one.

    Clients choose application, user and database names: a name may look like a severity and a message, or
    like other names. ``readings`` are tried in order: with databases that exist, then with any others.
    ``first_name`` is the first of the names in the prefix, ``sessions`` the escapes that identify sessions.
    """

    readings: tuple[_Readings, ...]
    first_name: str | None
    sessions: tuple[str, ...]
    _certain: set[str] = field(default_factory=set)

    def match(self, line: str) -> re.Match[str] | None:
        """Return the parts of a line; None if it does not match, or matches in two different ways.

        The groups are named after the letters of the prefix's escapes, and ``severity``, ``part``, ``text``.
        """
        for one in self.readings:
            found = one.shortest.match(line)
            if found is not None:
                return found if self._is_certain(one, found, line) else None
        return None

    def session(self, found: re.Match[str]) -> str:
        """Return the session of a line."""
        for letter in self.sessions:
            if text := found[letter]:
                return text
        return ""

    def _is_certain(self, one: _Readings, found: re.Match[str], line: str) -> bool:
        text_at, at = found.start("text"), -1 if self.first_name is None else found.start(self.first_name)
        names = line[at:text_at] if at >= 0 else ""
        # Without another severity in the line, the names alone decide whether there is another reading.
        if names in self._certain and line.find(":  ", text_at) < 0:
            return True
        if not one.agree(found, line):
            return False
        if len(self._certain) >= _MOST_NAMES:
            self._certain.clear()
        self._certain.add(names)
        return True


def prefix_pattern(prefix: str, databases: Collection[str] = ()) -> LinePattern:
    """Return the pattern of lines. ``databases`` are the names of those that exist.

    Raises: UsageError if the prefix does not identify sessions.
    """
    named = _named(prefix)
    sessions = tuple(letter for letter in ("c", "p") if letter in named)
    if not sessions:
        raise UsageError(
            f"log_line_prefix = '{prefix}' does not identify sessions",
            detail="it contains neither %p (process ID) nor %c (session ID)",
            hint="set log_line_prefix = '%m [%p] %q%u@%d app=%a ' and log again, or use csvlog or jsonlog",
        )
    compared = frozenset(named) - {"a", "u"} | {"severity", "part", "text"}
    readings = []
    if databases and "d" in named:
        existing = sorted({*databases, UNKNOWN}, key=len)
        readings.append(_readings(prefix, compared, existing))
        compared -= {"d"}  # whichever name it is, it is of no database that exists
    readings.append(_readings(prefix, compared, None))
    first_name = next((letter for letter in named if letter in _NAMES), None)
    return LinePattern(tuple(readings), first_name, sessions)


def foreign_severity(head: Iterable[str], prefix: str) -> str | None:
    """Return the first word of another language in place of a severity; None without one."""
    pattern = re.compile(_pattern(prefix, "?", None) + _OF_ANY_LANGUAGE)
    return next((word for line in head if (found := pattern.match(line)) and (word := found["word"])), None)


def beginning(line: str) -> str | None:
    """Return a line up to its severity, without the message; None if it has no severity."""
    found = _BEGINNING.match(line)
    return None if found is None else found[0]


def _readings(prefix: str, compared: frozenset[str], existing: Sequence[str] | None) -> _Readings:
    longest = None if existing is None else existing[::-1]
    return _Readings(
        re.compile(_pattern(prefix, "?", existing) + _ENGLISH),
        re.compile(_pattern(prefix, "", longest) + _ENGLISH),
        compared,
    )


def _named(prefix: str) -> list[str]:
    """Return the letters of a prefix's escapes that have a pattern, each once, in order."""
    return list(dict.fromkeys(one[2] for one in _ESCAPE.finditer(prefix) if one[2] in _PATTERNS))


def _pattern(prefix: str, lazy: str, existing: Sequence[str] | None) -> str:
    """Return the pattern of a prefix; ``lazy``: of names; ``existing``: those of databases, None for any."""
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
            its = _PATTERNS[letter] + (lazy if letter in _NAMES else "")
            if letter == "d" and existing is not None:
                its = "|".join(map(re.escape, existing))
            # A repeated escape has the same text, except for padding.
            pieces.append(f"(?P={letter})" if letter in named else f"(?P<{letter}>{its})")
            pieces.append(" *" if found[1] else "")
            named.add(letter)
        elif letter == "%":
            pieces.append("%")
    pieces.append(re.escape(prefix[at:]))
    return "".join(pieces) + (f")?{lazy}" if is_optional else "")
