"""Transactions from a generator's log, as arrays.

Format, one line per transaction (pgbench's ``--log``; the sysbench wrapper writes the same):
``client transaction latency_us script epoch_s epoch_us [lag] [retries]``. A failed transaction has a
word in place of its latency: ``serialization`` or ``deadlock`` from pgbench, ``failed:SQLSTATE:US:STATEMENT``
from the sysbench wrapper and pgdyno-driver; its duration and statement may be empty. A latency includes
earlier attempts.
"""

from __future__ import annotations

import re
import string
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.model.experiments.failures import Failures, added_up, failed_share
from pgdyno.model.experiments.slices import HostLog

_COLUMNS = 6
_LETTERS = string.ascii_lowercase.encode()
_ALLOWED = b"0123456789- \n"
_FAILED = re.compile(
    rb"[0-9]+ [0-9]+ (?:(serialization|deadlock)|failed:([0-9A-Z]{5}):([0-9]{0,15}):([^ ]*))"
    rb" [0-9]+ ([0-9]{1,10}) ([0-9]{1,6})(?: [0-9]+)*"
)
_SQLSTATES = {b"serialization": "40001", b"deadlock": "40P01"}
_LONE_SIGN = re.compile(rb"-(?![0-9])|(?<=[0-9])-")  # numpy parses it as a number
_BLANK, _LINE_FEED = b" \n"
_LARGEST = 1 << 53  # bound on numbers in a log; arbitrary, and sums of them do not overflow
_LARGEST_EPOCH_S = 9_000_000_000  # in the year 2255; nanoseconds since 1970 have 63 bits


@dataclass(frozen=True)
class Transactions:
    """Transactions of one arm. ``failed_ns`` are start times of failed ones, by SQLSTATE and statement.

    If the log has no duration for a failed one, its time of failure stands in.

    Shapes: completed_ns, latency_us (n,), failed_ns (m,) each, int64, in no particular order.
    Units: wall-clock nanoseconds since the epoch; microseconds.
    """

    completed_ns: NDArray[np.int64]
    latency_us: NDArray[np.int64]
    failed_ns: Mapping[tuple[str, str], NDArray[np.int64]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of completed transactions."""
        return int(self.completed_ns.size)

    @property
    def failed_share(self) -> float:
        """The share of failed transactions."""
        return failed_share(self.count, self.failures)

    @property
    def failures(self) -> tuple[Failures, ...]:
        """The failed transactions, by cause."""
        return added_up(
            Failures(sqlstate, at_ns.size, statement)
            for (sqlstate, statement), at_ns in self.failed_ns.items()
        )


def parse_all(logs: Iterable[HostLog]) -> Transactions:
    """Parse the logs of all load hosts of an arm, and convert them to one clock.

    Raises: as ``parse``.
    """
    parsed = [_moved(parse(log.text), log.moves) for log in logs]
    return Transactions(
        np.concatenate([one.completed_ns for one in parsed]),
        np.concatenate([one.latency_us for one in parsed]),
        {
            cause: np.concatenate([one.failed_ns[cause] for one in parsed if cause in one.failed_ns])
            for cause in dict.fromkeys(cause for one in parsed for cause in one.failed_ns)
        },
    )


def _moved(transactions: Transactions, moves: tuple[tuple[int, int], ...]) -> Transactions:
    """Shift every time by its turn's offset; its turn is the last one that began at or before it."""
    if not moves:
        return transactions
    begins_ns, added_ns = np.array(moves, dtype=np.int64).T

    def moved(at_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        which = np.maximum(np.searchsorted(begins_ns, at_ns, side="right") - 1, 0)
        return np.asarray(at_ns + added_ns[which], dtype=np.int64)

    return replace(
        transactions,
        completed_ns=moved(transactions.completed_ns),
        failed_ns={cause: moved(at_ns) for cause, at_ns in transactions.failed_ns.items()},
    )


def parse(text: bytes) -> Transactions:
    """Parse complete log lines.

    Raises: GeneratorFailedError if a line is not in the format.
    """
    if text and not text.endswith(b"\n"):
        raise _unreadable(text)
    good, failed = _without_failures(text)
    if not good:
        return Transactions(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), failed)
    columns = _columns(good)
    if columns is None:
        raise _unreadable(good)
    completed_ns = (columns[:, 4] * 1_000_000 + columns[:, 5]) * 1_000
    return Transactions(completed_ns, columns[:, 2].copy(), failed)


def _columns(text: bytes) -> NDArray[np.int64] | None:
    """Return the numbers by line and column; None if lines differ in format or numbers are out of range."""
    if text.translate(None, delete=_ALLOWED) or _LONE_SIGN.search(text):
        return None
    lines, count = text.count(b"\n"), text.partition(b"\n")[0].count(b" ") + 1
    characters = np.frombuffer(text, dtype=np.uint8)
    separators = characters[(characters == _BLANK) | (characters == _LINE_FEED)]
    if count < _COLUMNS or separators.size != lines * count:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # numpy warns of text left over
            numbers = np.fromstring(text, dtype=np.int64, sep=" ")
    except (ValueError, DeprecationWarning):
        return None
    are_lines = np.all(separators.reshape(lines, count)[:, -1] == _LINE_FEED)
    if not are_lines or numbers.size != lines * count or np.abs(numbers).max() >= _LARGEST:
        return None
    columns = numbers.reshape(lines, count)
    is_time = np.all((columns[:, 4:6] >= 0) & (columns[:, 4:6] < (_LARGEST_EPOCH_S, 1_000_000)))
    return columns if is_time else None


def _unreadable(text: bytes) -> GeneratorFailedError:
    first, _, _ = text.partition(b"\n")
    return GeneratorFailedError(
        "the generator's transaction log is malformed",
        detail=f"first line: {first.decode(errors='replace')}",
    )


def _without_failures(text: bytes) -> tuple[bytes, dict[tuple[str, str], NDArray[np.int64]]]:
    """Return the text without failed transactions, and these as ``Transactions.failed_ns``."""
    if not _has_letters(text):
        return text, {}
    lines = text.split(b"\n")
    failed: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for line in filter(_has_letters, lines):
        found = _FAILED.fullmatch(line)
        if found is None or int(found[5]) >= _LARGEST_EPOCH_S:
            raise _unreadable(line)
        word, sqlstate, lasted_us, statement, s, us = found.groups()
        cause = (_SQLSTATES[word], "") if word else (sqlstate.decode(), statement.decode(errors="replace"))
        failed[cause].append((int(s) * 1_000_000 + int(us) - int(lasted_us or 0)) * 1_000)
    good = b"\n".join(line for line in lines if not _has_letters(line))
    return good, {cause: np.array(at_ns, dtype=np.int64) for cause, at_ns in failed.items()}


def _has_letters(text: bytes) -> bool:
    return len(text.translate(None, delete=_LETTERS)) < len(text)
