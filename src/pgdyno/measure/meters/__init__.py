"""The catalogue of meters, found by walking the package: each file adds one meter."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Protocol, cast

from pgdyno.measure.meters._contract import Counters, Meter, MeterContext


class MeterModule(Protocol):
    """The interface of a meter file."""

    METER: Meter

    def read(self, context: MeterContext) -> Counters | None:
        """Return the current counters; None if they cannot be read."""
        ...

    def value(self, delta: Counters, transactions: int) -> float | None:
        """Return the metric's value for a block; None if it is undefined there."""
        ...


def load() -> tuple[MeterModule, ...]:
    """Return every meter, ordered by metric."""
    names = (
        module.name
        for module in pkgutil.walk_packages(__path__, f"{__name__}.")
        if not module.ispkg and not module.name.rpartition(".")[2].startswith("_")
    )
    found = (cast("MeterModule", importlib.import_module(name)) for name in names)
    return tuple(sorted(found, key=lambda meter: meter.METER.metric))
