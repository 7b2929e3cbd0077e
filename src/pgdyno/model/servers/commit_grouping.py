"""How many commits a flush of the WAL serves under a load, and what a flush takes."""

from __future__ import annotations

from dataclasses import dataclass

ENOUGH_CLIENTS = 8  # arbitrary: fewer seldom commit at the same time


@dataclass(frozen=True)
class CommitGrouping:
    """What was counted of a writing workload. Units: ``flush_us`` microseconds, of 8 kB."""

    workload: str
    clients: int
    commits: int
    flushes: int
    flush_us: float

    @property
    def commits_per_flush(self) -> float:
        """Commits that one flush served; all of them if there was none."""
        return self.commits / max(self.flushes, 1)
