"""The log as lines of text: an entry begins with log_line_prefix, its further lines with a tab."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from pgdyno.workload.capture.logs.entry import MOST_CHARACTERS, LogEntry, seconds
from pgdyno.workload.capture.logs.line_prefix import LinePattern

_MESSAGE, _DETAIL, _STATEMENT = "MESSAGE", "DETAIL", "STATEMENT"


def is_stderr(head: Iterable[str], pattern: LinePattern) -> bool:
    """Whether any of a file's first lines matches log_line_prefix."""
    return any(pattern.match(line) is not None for line in head)


def stderr_entries(lines: Iterable[str], pattern: LinePattern) -> Iterator[LogEntry | None]:
    """Yield entries; None for an ambiguous line, or one of no entry, such as other programs write."""
    entry: _Entry | None = None
    for line in lines:
        if line.startswith("\t"):
            if entry is not None:
                entry.add(f"\n{line[1:].rstrip(chr(10))}")
            continue
        found = pattern.match(line)
        if found is None:
            yield None
            if entry is not None:
                entry.interrupt()
        elif found["severity"] is not None:
            if entry is not None:
                yield entry.whole()
            entry = _Entry(found, pattern.session(found))
        elif entry is not None:
            entry.go_on(found, pattern.session(found))
    if entry is not None:
        yield entry.whole()


class _Entry:
    """An entry being read."""

    __slots__ = ("_found", "_part", "_session", "_size", "_texts")

    def __init__(self, found: re.Match[str], session: str) -> None:
        text = found["text"]
        self._found = found
        self._session = session
        self._texts = {_MESSAGE: [text]}
        self._size = len(text)
        self._part: str | None = _MESSAGE

    def go_on(self, found: re.Match[str], session: str) -> None:
        """Begin a part such as DETAIL; it is ignored if it is from a different session."""
        self._part = found["part"] if session == self._session else None
        self.add(found["text"])

    def interrupt(self) -> None:
        """Ignore further lines of the current part: they belong to other output."""
        self._part = None

    def add(self, text: str) -> None:
        """Add text to the current part."""
        self._size += len(text)
        if self._part is not None and self._size <= MOST_CHARACTERS:
            self._texts.setdefault(self._part, []).append(text)

    def whole(self) -> LogEntry | None:
        """Return the entry; None if it is too long."""
        if self._size > MOST_CHARACTERS:
            return None
        known = self._found.groupdict()
        line = known.get("l")
        return LogEntry(
            at_s=_at(known),
            session=self._session,
            database=known.get("d"),
            application=(known.get("a") or "").strip(),
            severity=known["severity"] or "",
            message="".join(self._texts[_MESSAGE]),
            detail="".join(self._texts.get(_DETAIL, ())),
            query="".join(self._texts.get(_STATEMENT, ())),
            line=None if line is None else int(line),
        )


def _at(prefix: Mapping[str, str | None]) -> float | None:
    for letter in ("m", "t"):
        if text := prefix.get(letter):
            return seconds(text)
    epoch = prefix.get("n")
    return float(epoch) if epoch else None
