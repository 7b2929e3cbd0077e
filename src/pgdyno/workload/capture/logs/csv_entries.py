"""csvlog: entries in CSV, whose fields PostgreSQL's manual lists; later versions add some at the end."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator

from pgdyno.workload.capture.logs.entry import MOST_CHARACTERS, LogEntry, seconds

_LEAST_FIELDS = 23  # of PostgreSQL 12
_TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [^,\"\n]{1,40},"
_BEGINS = re.compile(_TIME)
# Within a quoted field, quotation marks are doubled, and after its last one stands a comma or nothing: a
# single one before something else begins a field. So a line like this begins an entry even where the entry
# before it was not complete, whatever is written in that.
_SURELY_BEGINS = re.compile(rf'{_TIME}"[^",\n](?:[^"\n]|"")*","(?:[^"\n]|"")+",\d+,')
_COMMAS = 10  # before an entry's message, which may go over several lines
_AT, _DATABASE, _SESSION, _LINE = 0, 2, 5, 6
_SEVERITY, _MESSAGE, _DETAIL, _QUERY, _APPLICATION = 11, 13, 14, 19, 22


def is_csv(head: Iterable[str]) -> bool:
    """Whether the first lines of a file are of a csvlog; the very first may be the end of an entry."""
    return any(_BEGINS.match(line) is not None and line.count(",") > _COMMAS for line in head)


def csv_entries(lines: Iterable[str]) -> Iterator[LogEntry | None]:
    """Yield entries; None for one that cannot be read, as the last one of a log that is being written."""
    for record in _records(lines):
        yield _entry(record)


def _records(lines: Iterable[str]) -> Iterator[str]:
    """Yield entries as text: a quoted field may go over several lines.

    What lies between quotation marks is not known at a log's beginning, and after too long an entry.
    """
    parts: list[str] = []
    size, is_open = 0, True
    for line in lines:
        begins = _SURELY_BEGINS if is_open else _BEGINS
        if begins.match(line) is not None:
            if parts:
                yield "".join(parts)
            parts, size, is_open = [], 0, False
        elif not parts:
            continue  # the end of an entry that began in another file, or one of no session
        size += len(line)
        if size <= MOST_CHARACTERS:
            parts.append(line)
        is_open = size > MOST_CHARACTERS or is_open ^ (line.count('"') % 2 == 1)
    if parts:
        yield "".join(parts)


def _entry(record: str) -> LogEntry | None:
    try:
        [fields] = csv.reader([record], strict=True)
    except (csv.Error, ValueError):
        return None
    if len(fields) < _LEAST_FIELDS:
        return None
    line = fields[_LINE]
    return LogEntry(
        at_s=seconds(fields[_AT]),
        session=fields[_SESSION],
        database=fields[_DATABASE],
        application=fields[_APPLICATION],
        severity=fields[_SEVERITY],
        message=fields[_MESSAGE],
        detail=fields[_DETAIL],
        query=fields[_QUERY],
        line=int(line) if line.isdecimal() else None,
    )
