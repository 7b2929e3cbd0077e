"""Builds of PostgreSQL that a plan can choose from."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.plans.recipe import PATCHED

_WORTH = {"hugetext": -1, "cspgo": -1, PATCHED: 1, "lto": 2, "pgo": 4, "bolt": 8}
"""By which builds are ranked: measured, each part was worth more than those before it together, or joined
them (docs/results/builds.md). Of hugetext, which takes memory, and of cspgo, which builds of before
29 November 2026 may have, no gain was found beside bolt."""


@dataclass(frozen=True)
class KnownBuild:
    """A build that is installed here, and was verified to be the same PostgreSQL."""

    name: str  # built-0123456789ab
    version: str  # 18.6; of releases only
    compiler: str
    recipe: str  # lto+pgo+bolt
    training: tuple[str, ...]
    tests: int  # of PostgreSQL's own, all passed

    @property
    def major(self) -> int:
        """The major version."""
        return self.release[0]

    @property
    def is_patched(self) -> bool:
        """Whether pgdyno has changed its source."""
        return PATCHED in self.recipe.split("+")

    @property
    def strength(self) -> int:
        """The rank of its recipe among builds of the same program."""
        return sum(_WORTH.get(part, 0) for part in self.recipe.split("+"))

    @property
    def release(self) -> tuple[int, ...]:
        """The version as numbers."""
        return tuple(map(int, self.version.split(".")))
