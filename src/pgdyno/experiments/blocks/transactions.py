"""Transactions as a generator logged them, as arrays.

Format, one line per transaction (pgbench's ``--log``; the sysbench wrapper writes the same):
``client transaction latency_us script epoch_s epoch_us [lag] [retries]``. A transaction that failed has a
word (``failed``, ``skipped``, ``serialization``, ``deadlock``) in place of its latency.
"""

from __future__ import annotations

import string
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pgdyno.model.errors import GeneratorFailedError

_COLUMNS = 6
_LETTERS = string.ascii_lowercase.encode()


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


def parse(text: bytes) -> Transactions:
    """Parse complete log lines.

    Raises: GeneratorFailedError if a line is not in the format.
    """
    good, failed = _without_failures(text)
    if not good:
        return Transactions(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), failed)
    try:
        columns = np.fromstring(good, dtype=np.int64, sep=" ").reshape(good.count(b"\n"), -1)
    except ValueError as error:
        raise _unreadable(good) from error
    if columns.shape[1] < _COLUMNS:
        raise _unreadable(good)
    completed_ns = (columns[:, 4] * 1_000_000 + columns[:, 5]) * 1_000
    return Transactions(completed_ns, columns[:, 2].copy(), failed)


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
    lines = text.splitlines(keepends=True)
    good = [line for line in lines if len(line.translate(None, delete=_LETTERS)) == len(line)]
    return b"".join(good), len(lines) - len(good)
