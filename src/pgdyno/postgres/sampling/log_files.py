"""A server's log files as lines of text, and its logging settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from pgdyno.base.errors import UsageError
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import server_errors_converted

_LONGEST_LINE_BYTES = 1 << 20  # arbitrary: the rest of a line is dropped
_HEAD_LINES, _HEAD_CHARACTERS = 1000, 4 << 20  # arbitrary: text between entries is shorter
_REPORT_EVERY_S = 1.0
_SETTINGS = """
SELECT name, pg_catalog.current_setting(name)
FROM pg_catalog.unnest(ARRAY['log_line_prefix', 'lc_messages', 'log_statement',
    'log_min_duration_statement', 'log_min_duration_sample', 'log_statement_sample_rate',
    'log_transaction_sample_rate']) AS name
"""
_DATABASES = "SELECT datname FROM pg_catalog.pg_database"
_LOGGING_EVERY = (
    {"log_statement": "all"},
    {"log_min_duration_statement": "0"},
    {"log_min_duration_sample": "0", "log_statement_sample_rate": "1"},
    {"log_transaction_sample_rate": "1"},
)
"""Each of these alone causes every statement to be logged."""


@dataclass(frozen=True)
class LogSettings:
    """``line_prefix`` is log_line_prefix, ``language`` lc_messages. ``databases`` are all of the server's.

    ``partial``: the settings, if they omit statements, else empty.
    """

    line_prefix: str
    language: str
    databases: tuple[str, ...]
    partial: Mapping[str, str]


@checked_results()
def read_log_settings(connection: Connection) -> LogSettings:
    """Return a server's current logging settings. Raises: ServerError."""
    with server_errors_converted():
        settings = {str(name): str(value) for name, value in connection.execute(_SETTINGS).fetchall()}
        databases = tuple(str(name) for (name,) in connection.execute(_DATABASES).fetchall())
    prefix, language = settings.pop("log_line_prefix"), settings.pop("lc_messages")
    is_every = any(one.items() <= settings.items() for one in _LOGGING_EVERY)
    return LogSettings(prefix, language, databases, {} if is_every else settings)


def read_head(path: Path) -> list[str]:
    """Return the first lines of a file. Raises: UsageError if it cannot be read."""
    try:
        if not path.is_file():
            raise UsageError(
                f'"{path}" is not a file' if path.exists() else f'could not read "{path}"',
                detail=None if path.exists() else "there is no such file",
            )
        with path.open("rb") as file:
            return list(_head(_lines(file)))
    except OSError as error:
        raise UsageError(f'could not read "{path}"', detail=error.strerror) from error


def _head(lines: Iterator[str]) -> Iterator[str]:
    size = 0
    for line in islice(lines, _HEAD_LINES):
        yield line
        size += len(line)
        if size > _HEAD_CHARACTERS:
            return


def read_files(paths: Sequence[Path], report: Callable[[float, float], None]) -> Iterator[Iterator[str]]:
    """Yield an iterator over the lines of each file, to be consumed before the next; bad UTF-8 is replaced.

    ``report`` gets the elapsed and the expected total time in seconds. Raises: UsageError.
    """
    began_s = time.monotonic()
    sizes = [path.stat().st_size for path in paths]

    def report_read(before: int, of_file: int) -> None:
        passed_s = time.monotonic() - began_s
        report(passed_s, passed_s * max(1.0, sum(sizes) / max(1, before + of_file)))

    for number, path in enumerate(paths):
        yield _lines_of(path, partial(report_read, sum(sizes[:number])))


def _lines_of(path: Path, report_read: Callable[[int], None]) -> Iterator[str]:
    reported_s = time.monotonic()
    try:
        with path.open("rb") as file:
            for line in _lines(file):
                yield line
                if time.monotonic() - reported_s > _REPORT_EVERY_S:
                    reported_s = time.monotonic()
                    report_read(file.tell())
    except OSError as error:
        raise UsageError(f'could not read "{path}"', detail=error.strerror) from error


def _lines(file: BinaryIO) -> Iterator[str]:
    while line := file.readline(_LONGEST_LINE_BYTES):
        end = line
        while len(end) == _LONGEST_LINE_BYTES and not end.endswith(b"\n"):
            end = file.readline(_LONGEST_LINE_BYTES)
        text = line.decode(errors="replace")
        yield text if text.endswith("\n") else f"{text}\n"
