"""The three log formats, detected from a file's first lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pgdyno.workload.capture.logs.csv_entries import csv_entries, is_csv
from pgdyno.workload.capture.logs.entry import LogEntry
from pgdyno.workload.capture.logs.json_entries import is_json, json_entries
from pgdyno.workload.capture.logs.line_prefix import prefix_pattern
from pgdyno.workload.capture.logs.stderr_entries import is_stderr, stderr_entries

Entries = Iterator[LogEntry | None]


@dataclass(frozen=True)
class LogFormat:
    """A format: its name in log_destination, and the reader of its lines."""

    name: str
    entries: Callable[[Iterable[str]], Entries]

    def first_s(self, head: Iterable[str]) -> float:
        """Return the time of the first entry in ``head``, in seconds; 0 if unknown."""
        times = (entry.at_s for entry in self.entries(head) if entry is not None)
        return next((one for one in times if one is not None), 0.0)


def recognise(head: Sequence[str], line_prefix: str) -> LogFormat | None:
    """Return the format of a file's first lines; None if it is not a log.

    ``line_prefix`` is the server's log_line_prefix. Raises: UsageError if it does not identify sessions.
    """
    if is_json(head):
        return LogFormat("jsonlog", json_entries)
    if is_csv(head):
        return LogFormat("csvlog", csv_entries)
    pattern = prefix_pattern(line_prefix)
    if is_stderr(head, pattern):
        return LogFormat("stderr", lambda lines: stderr_entries(lines, pattern))
    return None
