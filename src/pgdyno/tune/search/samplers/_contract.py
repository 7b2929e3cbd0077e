"""The contract of a sampler: one file of ``samplers/`` adds one.

A sampler file has ``NAME``, a docstring that describes how it chooses, and ``make(space, seed) -> Sampler``.
A sampler chooses points and receives the results of their trials; it neither measures nor decides. Equal
seeds and equal results give equal points.
"""

from __future__ import annotations

from typing import Protocol

from pgdyno.model.tuning.tuning import Point, Space, Trial


class Sampler(Protocol):
    """Chooses points."""

    def ask(self) -> Point:
        """Return the next point to try."""
        ...

    def tell(self, trial: Trial) -> None:
        """Record a finished trial; failed trials have no gain."""
        ...


class SamplerModule(Protocol):
    """A sampler file, as ``load`` returns it."""

    NAME: str
    __doc__: str | None

    def make(self, space: Space, seed: int) -> Sampler:
        """Return a sampler. Raises: UsageError if a required package is not installed."""
        ...
