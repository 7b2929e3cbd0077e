"""The three log formats, detected from a file's first lines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pgdyno.workload.capture.logs.csv_entries import csv_entries, is_csv
from pgdyno.workload.capture.logs.entry import LogEntry
from pgdyno.workload.capture.logs.json_entries import is_json, json_entries
from pgdyno.workload.capture.logs.line_prefix import prefix_pattern
from pgdyno.workload.capture.logs.stderr_entries import is_stderr, stderr_entries

Entries = Iterator[LogEntry | None]
TEXT = "stderr"
"""The name of the format with log_line_prefix at the beginning of its lines."""


@dataclass(frozen=True)
class LogFormat:
    """A format: its name in log_destination, and the reader of its lines."""

    name: str
    entries: Callable[[Iterable[str]], Entries]

    def first_s(self, head: Iterable[str]) -> float:
        """Return the time of the first entry in ``head``, in seconds; 0 if unknown."""
        times = (entry.at_s for entry in self.entries(head) if entry is not None)
        return next((one for one in times if one is not None), 0.0)

    def unreadable(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines of a text log that belong to no entry."""
        return (line for line in lines if list(self.entries([line])) == [None])


def recognise(head: Sequence[str], line_prefix: str, databases: Collection[str] = ()) -> LogFormat | None:
    """Return the format of a file's first lines; None if it is not a log.

    ``line_prefix`` is the log's log_line_prefix, ``databases`` the server's. Raises: UsageError if the prefix
    does not identify sessions.
    """
    if is_json(head):
        return LogFormat("jsonlog", json_entries)
    if is_csv(head):
        return LogFormat("csvlog", csv_entries)
    pattern = prefix_pattern(line_prefix, databases)
    if is_stderr(head, pattern):
        return LogFormat(TEXT, lambda lines: stderr_entries(lines, pattern))
    return None
