"""Spinners that start no process and know which CPUs they would keep busy now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from pgdyno.host.probing.spinners import Spinners


@dataclass(frozen=True)
class CountedSpinners(Spinners):
    """Those of a machine where nothing speaks against them."""

    running: list[int] = field(default_factory=list)

    def why_not(self) -> str | None:
        return None

    def spin(self) -> AbstractContextManager[tuple[int, ...]]:
        return self._spinning()

    @contextmanager
    def _spinning(self) -> Iterator[tuple[int, ...]]:
        self.running.extend(self.cpus)
        try:
            yield tuple(self.cpus)
        finally:
            self.running.clear()
