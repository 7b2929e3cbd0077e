"""Aims of a search: quantities that a configuration may be better in."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from pgdyno.model.errors import UsageError
from pgdyno.model.experiments.metric import TAIL_MEAN, THROUGHPUT, WAL_BYTES


class Aim(StrEnum):
    """An aim by the name that users give it."""

    THROUGHPUT = "throughput"
    TAIL = "tail"  # the mean latency of the slowest 5 %
    WAL = "wal"  # bytes of WAL per transaction
    MEMORY = "memory"  # the server's worst case, by the memory proof: reckoned, not measured

    @property
    def metric(self) -> str | None:
        """The metric that it is measured by; None if it is reckoned from the settings."""
        return {Aim.THROUGHPUT: THROUGHPUT, Aim.TAIL: TAIL_MEAN, Aim.WAL: WAL_BYTES}.get(self)

    @property
    def label(self) -> str:
        """Its name in a table."""
        return {
            Aim.THROUGHPUT: "throughput",
            Aim.TAIL: "slowest 5 %, mean latency",
            Aim.WAL: "WAL per transaction",
            Aim.MEMORY: "memory at worst",
        }[self].replace(" %", "\u00a0%")

    def gain(self, log_ratio: float) -> float:
        """Return ln(configuration / default) so that more is better."""
        return log_ratio if self is Aim.THROUGHPUT else -log_ratio


def aims_named(names: Sequence[str]) -> tuple[Aim, ...]:
    """Return the aims; none where throughput alone is named: every search has that.

    Raises: UsageError for one that does not exist, or is given twice.
    """
    for name in names:
        if name not in set(Aim):
            raise UsageError(f'there is no aim "{name}"', hint=f"known are: {', '.join(Aim)}")
        if names.count(name) > 1:
            raise UsageError(
                f'the aim "{name}" is given twice', hint="all aims count alike: give each of them once"
            )
    found = tuple(map(Aim, names))
    return () if found == (Aim.THROUGHPUT,) else found
