"""An entry of a server's log, whatever the format of the log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

_BEGINNING = datetime(1970, 1, 1)  # noqa: DTZ001 — a log names its time zone, the same in every entry
_TO_MILLISECONDS = 23  # characters: "2026-11-25 12:35:23.957"
_TO_SECONDS = 19
MOST_CHARACTERS = 1 << 17
"""Of an entry: longer ones are left out. The most that Python reads of a field of CSV."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry. Texts are empty, and the rest is None, where the log does not have them.

    ``at_s`` is in seconds of the log's own time zone. ``line`` counts the entries of a session from 1.
    ``query`` is the statement that an error is about.
    """

    at_s: float | None
    session: str
    database: str | None
    application: str
    severity: str
    message: str
    detail: str = ""
    query: str = ""
    line: int | None = None


def seconds(timestamp: str) -> float | None:
    """Return a log's timestamp in seconds; None if it is none. Its time zone is left out."""
    for length in (_TO_MILLISECONDS, _TO_SECONDS):
        try:
            return (datetime.fromisoformat(timestamp[:length]) - _BEGINNING).total_seconds()
        except (ValueError, TypeError):
            continue
    return None
