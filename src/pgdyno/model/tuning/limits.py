"""Limits of a search on a running server: for latencies and for memory during a trial."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.base import numbers
from pgdyno.base.numbers import SPACE


class OverLimitError(Exception):
    """A trial was ended, because the server went over a limit with ``variant``; ``reason`` has the figure."""

    def __init__(self, variant: str, reason: str) -> None:
        super().__init__(reason)
        self.variant = variant
        self.reason = reason


@dataclass(frozen=True)
class OwnerLimits:
    """Limits as the server's owner gave them; None: there is none.

    ``latency_ms`` is of the 99th percentile of a workload's transactions in a trial, ``memory_bytes`` of what
    all processes of the server have in memory.
    """

    latency_ms: float | None = None
    memory_bytes: int | None = None

    @property
    def is_any(self) -> bool:
        """Whether there is a limit."""
        return self.latency_ms is not None or self.memory_bytes is not None

    def over_latency(self, p99_ms: float, workload: str) -> str:
        """Say how far a 99th percentile is over the limit; nothing if it is not."""
        if self.latency_ms is None or p99_ms <= self.latency_ms:
            return ""
        return (
            f"the 99th percentile of {workload} was {numbers.number(p99_ms)}{SPACE}ms, and "
            f"--limit-latency is {numbers.plain(self.latency_ms)}{SPACE}ms"
        )

    def over_memory(self, used_bytes: int) -> str:
        """Say how far the server's memory is over the limit; nothing if it is not."""
        if self.memory_bytes is None or used_bytes <= self.memory_bytes:
            return ""
        return f"the server had {numbers.size(used_bytes)} in memory, and {self._stated()}"

    def over_memory_at_worst(self, worst_bytes: int, found_bytes: int) -> str:
        """Say why a configuration is not tried; nothing if it may be.

        It may take as much as the one found in any case.
        """
        if self.memory_bytes is None or worst_bytes <= max(self.memory_bytes, found_bytes):
            return ""
        return f"its worst case is {numbers.size(worst_bytes)}, and {self._stated()}"

    def _stated(self) -> str:
        return f"--limit-memory is {numbers.size(self.memory_bytes or 0)}"
