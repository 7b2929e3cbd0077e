"""Transactions as a generator logged them, as arrays.

Format, one line per transaction (pgbench's ``--log``; the sysbench wrapper writes the same):
``client transaction latency_us script epoch_s epoch_us [lag] [retries]``. A transaction that failed has a
word (``failed``, ``skipped``, ``serialization``, ``deadlock``) in place of its latency.
"""

from __future__ import annotations

import re
import string
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pgdyno.model.errors import GeneratorFailedError
from pgdyno.model.experiments.host_log import HostLog

_COLUMNS = 6
_LETTERS = string.ascii_lowercase.encode()
_ALLOWED = b"0123456789- \n"
_LONE_SIGN = re.compile(rb"-(?![0-9])|(?<=[0-9])-")  # numpy takes it for a number
_BLANK, _LINE_FEED = b" \n"
_LARGEST = 1 << 53  # of any number in a log; arbitrary, and no sum of ours overflows
_LARGEST_EPOCH_S = 9_000_000_000  # in the year 2255; nanoseconds since 1970 have 63 bits


@dataclass(frozen=True)
class Transactions:
    """Completed transactions of one arm.

    Shapes: completed_ns, latency_us (n,), int64, in no particular order.
    Units: wall-clock nanoseconds since the epoch; microseconds.
    """

    completed_ns: NDArray[np.int64]
    latency_us: NDArray[np.int64]
    failed: int = 0

    @property
    def count(self) -> int:
        """How many completed."""
        return int(self.completed_ns.size)


def parse_all(logs: Iterable[HostLog]) -> Transactions:
    """Parse the logs of all hosts of an arm; all of it is by one clock then.

    Raises: as ``parse`` does.
    """
    parsed = [_moved(parse(log.text), log.moves) for log in logs]
    return Transactions(
        np.concatenate([one.completed_ns for one in parsed]),
        np.concatenate([one.latency_us for one in parsed]),
        sum(one.failed for one in parsed),
    )


def _moved(transactions: Transactions, moves: tuple[tuple[int, int], ...]) -> Transactions:
    """Move every end as its turn is moved: the last one that began before it, or with it."""
    if not moves:
        return transactions
    begins_ns, added_ns = np.array(moves, dtype=np.int64).T
    which = np.maximum(np.searchsorted(begins_ns, transactions.completed_ns, side="right") - 1, 0)
    return replace(transactions, completed_ns=transactions.completed_ns + added_ns[which])


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
    """Return the numbers by line and column; None if lines differ in form, or numbers are none of a log."""
    if text.translate(None, delete=_ALLOWED) or _LONE_SIGN.search(text):
        return None
    lines, count = text.count(b"\n"), text.partition(b"\n")[0].count(b" ") + 1
    characters = np.frombuffer(text, dtype=np.uint8)
    separators = characters[(characters == _BLANK) | (characters == _LINE_FEED)]
    if count < _COLUMNS or separators.size != lines * count:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # numpy's, of what it has left over
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
        "the generator's transaction log is not readable",
        detail=f"first line: {first.decode(errors='replace')}",
    )


def _without_failures(text: bytes) -> tuple[bytes, int]:
    """Take out the lines of failed transactions, which are rare, and count them."""
    if len(text.translate(None, delete=_LETTERS)) == len(text):
        return text, 0
    lines = text.split(b"\n")
    good = [line for line in lines if len(line.translate(None, delete=_LETTERS)) == len(line)]
    return b"\n".join(good), len(lines) - len(good)
