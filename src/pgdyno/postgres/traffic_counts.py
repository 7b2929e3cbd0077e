"""Transactions and time of a server's own traffic in a period."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Traffic:
    """Transactions of all databases, and how long their statements were executed for, in ms."""

    transactions: int
    active_ms: float

    def since(self, before: Traffic) -> Traffic:
        """Return the increase since ``before``; below 0 if the counters were reset meanwhile."""
        return Traffic(self.transactions - before.transactions, self.active_ms - before.active_ms)
