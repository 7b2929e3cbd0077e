"""Commits per WAL flush under a load, and the duration of a flush."""

from __future__ import annotations

from dataclasses import dataclass

ENOUGH_CLIENTS = 8  # arbitrary: fewer seldom commit at the same time


@dataclass(frozen=True)
class CommitGrouping:
    """Counts of a writing workload. Units: ``flush_us`` microseconds, of 8 kB."""

    workload: str
    clients: int
    commits: int
    flushes: int
    flush_us: float

    @property
    def commits_per_flush(self) -> float:
        """Commits that one flush served; all of them if there was none."""
        return self.commits / max(self.flushes, 1)
