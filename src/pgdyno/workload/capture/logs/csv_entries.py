"""csvlog: entries in CSV. PostgreSQL's manual lists the fields; later versions add some at the end."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator

from pgdyno.workload.capture.logs.entry import MOST_CHARACTERS, LogEntry, seconds

_LEAST_FIELDS = 23  # of PostgreSQL 12
_TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [^,\"\n]{1,40},"
_BEGINS = re.compile(_TIME)
# Within a quoted field, quotation marks are doubled, and a comma or nothing follows the last one. A single
# one before other text begins a field. So a line like this begins an entry even if the previous entry is
# incomplete, whatever that contains.
_SURELY_BEGINS = re.compile(rf'{_TIME}"[^",\n](?:[^"\n]|"")*","(?:[^"\n]|"")+",\d+,')
_COMMAS = 10  # before an entry's message, which may have several lines
_AT, _DATABASE, _SESSION, _LINE = 0, 2, 5, 6
_SEVERITY, _MESSAGE, _DETAIL, _QUERY, _APPLICATION = 11, 13, 14, 19, 22


def is_csv(head: Iterable[str]) -> bool:
    """Whether a file that begins with these lines is a csvlog; the first line may be the end of an entry."""
    return any(_BEGINS.match(line) is not None and line.count(",") > _COMMAS for line in head)


def csv_entries(lines: Iterable[str]) -> Iterator[LogEntry | None]:
    """Yield entries; None for an unreadable one, such as the last one of a log being written."""
    for record in _records(lines):
        yield _entry(record)


def _records(lines: Iterable[str]) -> Iterator[str]:
    """Yield entries as text: a quoted field may have several lines.

    At the beginning of a log and after an overlong entry, it is unknown whether a line is inside a quoted
    field.
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
            continue  # the end of an entry that began in another file, or an entry without a session
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
