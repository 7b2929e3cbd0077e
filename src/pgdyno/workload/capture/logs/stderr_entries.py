"""The log as lines of text: each begins with log_line_prefix, and further lines of a message with a TAB."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from pgdyno.workload.capture.logs.entry import MOST_CHARACTERS, LogEntry, seconds
from pgdyno.workload.capture.logs.line_prefix import LinePattern

_MESSAGE, _DETAIL, _STATEMENT = "MESSAGE", "DETAIL", "STATEMENT"


def is_stderr(head: Iterable[str], pattern: LinePattern) -> bool:
    """Whether some of the first lines of a file begin as log_line_prefix says."""
    return any(pattern.match(line) is not None for line in head)


def stderr_entries(lines: Iterable[str], pattern: LinePattern) -> Iterator[LogEntry | None]:
    """Yield entries; None for a line that belongs to none, as other programs write, or may be of two."""
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
            entry = _Entry(found)
        elif entry is not None:
            entry.go_on(found)
    if entry is not None:
        yield entry.whole()


class _Entry:
    """An entry whose lines are being read."""

    def __init__(self, found: re.Match[str]) -> None:
        self._prefix = found.groupdict()
        self._session = _session(self._prefix)
        self._texts: dict[str, list[str]] = {}
        self._size = 0
        self._part: str | None = _MESSAGE
        self.add(found["text"])

    def go_on(self, found: re.Match[str]) -> None:
        """Take DETAIL and so on, if it is of the same session."""
        is_ours = _session(found.groupdict()) == self._session
        self._part = found["part"] if is_ours else None
        self.add(found["text"])

    def interrupt(self) -> None:
        """Take no more of the part that is being read: further lines are of something else."""
        self._part = None

    def add(self, text: str) -> None:
        """Take more of the part that is being read."""
        self._size += len(text)
        if self._part is not None and self._size <= MOST_CHARACTERS:
            self._texts.setdefault(self._part, []).append(text)

    def whole(self) -> LogEntry | None:
        """Return the entry; None if it is too long."""
        if self._size > MOST_CHARACTERS:
            return None
        known = self._prefix
        line = known.get("l")
        return LogEntry(
            at_s=_at(known),
            session=self._session,
            database=known.get("d"),
            application=(known.get("a") or "").strip(),
            severity=known["severity"] or "",
            message="".join(self._texts.get(_MESSAGE, ())),
            detail="".join(self._texts.get(_DETAIL, ())),
            query="".join(self._texts.get(_STATEMENT, ())),
            line=None if line is None else int(line),
        )


def _session(prefix: Mapping[str, str | None]) -> str:
    return prefix.get("c") or prefix.get("p") or ""


def _at(prefix: Mapping[str, str | None]) -> float | None:
    for letter in ("m", "t"):
        if text := prefix.get(letter):
            return seconds(text)
    epoch = prefix.get("n")
    return float(epoch) if epoch else None
