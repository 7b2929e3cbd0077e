"""jsonlog: one object per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from pgdyno.workload.capture.logs.entry import MOST_CHARACTERS, LogEntry, seconds


def is_json(head: Iterable[str]) -> bool:
    """Whether a file that begins with these lines is a jsonlog."""
    return any(found is not None and "error_severity" in found for found in map(_read, head))


def json_entries(lines: Iterable[str]) -> Iterator[LogEntry | None]:
    """Yield entries; None for an unreadable one, such as the last one of a log being written."""
    for line in lines:
        found = _read(line) if len(line) <= MOST_CHARACTERS else None
        yield None if found is None else _entry(found)


def _read(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _in_utf8(text: str) -> str:
    """Return a text without lone surrogates, which JSON allows but UTF-8 cannot encode."""
    return text.encode(errors="replace").decode()


def _entry(found: dict[str, Any]) -> LogEntry | None:
    def text(name: str) -> str:
        value = found.get(name, "")
        return _in_utf8(value) if isinstance(value, str) else ""

    line = found.get("line_num")
    return LogEntry(
        at_s=seconds(text("timestamp")),
        session=text("session_id"),
        database=text("dbname"),
        application=text("application_name"),
        severity=text("error_severity"),
        message=text("message"),
        detail=text("detail"),
        query=text("statement"),
        line=line if isinstance(line, int) else None,
    )
