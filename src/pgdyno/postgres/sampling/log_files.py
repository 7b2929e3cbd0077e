"""A server's log files as lines of text, and the settings that they were written by."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from pgdyno.base.errors import UsageError
from pgdyno.postgres.answers import answers_of_postgresql
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import failures_in_words

_LONGEST_LINE_BYTES = 1 << 20  # arbitrary: the rest of a line is left out
_HEAD_LINES, _HEAD_CHARACTERS = 1000, 4 << 20  # arbitrary: what is written between entries is shorter
_TELL_S = 1.0
_SETTINGS = """
SELECT name, pg_catalog.current_setting(name)
FROM pg_catalog.unnest(ARRAY['log_line_prefix', 'log_statement', 'log_min_duration_statement',
    'log_min_duration_sample', 'log_statement_sample_rate', 'log_transaction_sample_rate']) AS name
"""
_LOGGING_EVERY = (
    {"log_statement": "all"},
    {"log_min_duration_statement": "0"},
    {"log_min_duration_sample": "0", "log_statement_sample_rate": "1"},
    {"log_transaction_sample_rate": "1"},
)
"""Settings by any of which every statement is logged."""


@dataclass(frozen=True)
class LogSettings:
    """``line_prefix`` is how lines begin; ``partial`` are the settings by which statements are left out."""

    line_prefix: str
    partial: Mapping[str, str]


@answers_of_postgresql()
def read_log_settings(connection: Connection) -> LogSettings:
    """Return the settings that a server has now. Raises: ServerError."""
    with failures_in_words():
        settings = {str(name): str(value) for name, value in connection.execute(_SETTINGS).fetchall()}
    prefix = settings.pop("log_line_prefix")
    is_every = any(one.items() <= settings.items() for one in _LOGGING_EVERY)
    return LogSettings(prefix, {} if is_every else settings)


def read_head(path: Path) -> list[str]:
    """Return the first lines of a file. Raises: UsageError if it cannot be read."""
    try:
        if not path.is_file():
            raise UsageError(
                f'"{path}" is no file' if path.exists() else f'could not read "{path}"',
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


def read_files(paths: Sequence[Path], tell: Callable[[float, float], None]) -> Iterator[Iterator[str]]:
    """Yield the lines of each file, which are read before the next one; bytes that are no UTF-8 are replaced.

    ``tell`` is told the seconds that have passed, and how many it takes in all. Raises: UsageError.
    """
    began_s = time.monotonic()
    sizes = [path.stat().st_size for path in paths]

    def tell_read(before: int, of_file: int) -> None:
        passed_s = time.monotonic() - began_s
        tell(passed_s, passed_s * max(1.0, sum(sizes) / max(1, before + of_file)))

    for number, path in enumerate(paths):
        yield _lines_of(path, partial(tell_read, sum(sizes[:number])))


def _lines_of(path: Path, tell_read: Callable[[int], None]) -> Iterator[str]:
    told_s = time.monotonic()
    try:
        with path.open("rb") as file:
            for line in _lines(file):
                yield line
                if time.monotonic() - told_s > _TELL_S:
                    told_s = time.monotonic()
                    tell_read(file.tell())
    except OSError as error:
        raise UsageError(f'could not read "{path}"', detail=error.strerror) from error


def _lines(file: BinaryIO) -> Iterator[str]:
    while line := file.readline(_LONGEST_LINE_BYTES):
        end = line
        while len(end) == _LONGEST_LINE_BYTES and not end.endswith(b"\n"):
            end = file.readline(_LONGEST_LINE_BYTES)
        text = line.decode(errors="replace")
        yield text if text.endswith("\n") else f"{text}\n"
