"""What a server did for others in some time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Traffic:
    """Transactions of all databases, and how long their statements were executed for, in ms."""

    transactions: int
    active_ms: float

    def since(self, before: Traffic) -> Traffic:
        """Return what came to it after ``before``; below 0 if the counters were reset meanwhile."""
        return Traffic(self.transactions - before.transactions, self.active_ms - before.active_ms)
