"""Limits of a search on a running server: latency and memory during a trial."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.base import numbers
from pgdyno.base.numbers import SPACE


class OverLimitError(Exception):
    """A trial of ``variant`` was stopped because the server exceeded a limit; ``reason`` has the figure."""

    def __init__(self, variant: str, reason: str) -> None:
        super().__init__(reason)
        self.variant = variant
        self.reason = reason


@dataclass(frozen=True)
class OwnerLimits:
    """Limits set by the server's owner; None: no limit.

    ``latency_ms`` limits the 99th percentile of a workload's transactions in a trial, ``memory_bytes`` the
    memory of all processes of the server.
    """

    latency_ms: float | None = None
    memory_bytes: int | None = None

    @property
    def is_any(self) -> bool:
        """Whether there is a limit."""
        return self.latency_ms is not None or self.memory_bytes is not None

    def over_latency(self, p99_ms: float, workload: str) -> str:
        """Return the reason if a 99th percentile exceeds the limit; empty if it does not."""
        if self.latency_ms is None or p99_ms <= self.latency_ms:
            return ""
        return (
            f"the 99th percentile of {workload} was {numbers.number(p99_ms)}{SPACE}ms, and "
            f"--limit-latency is {numbers.plain(self.latency_ms)}{SPACE}ms"
        )

    def over_memory(self, used_bytes: int) -> str:
        """Return the reason if the server's memory exceeds the limit; empty if it does not."""
        if self.memory_bytes is None or used_bytes <= self.memory_bytes:
            return ""
        return f"the server had {numbers.size(used_bytes)} in memory, and {self._limit()}"

    def over_memory_at_worst(self, worst_bytes: int, found_bytes: int) -> str:
        """Return why a configuration is not tried; empty if it may be.

        It may always use as much memory as the original configuration.
        """
        if self.memory_bytes is None or worst_bytes <= max(self.memory_bytes, found_bytes):
            return ""
        return f"its worst case is {numbers.size(worst_bytes)}, and {self._limit()}"

    def _limit(self) -> str:
        return f"--limit-memory is {numbers.size(self.memory_bytes or 0)}"
