"""The space of a search: dimensions, and the values that each may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pgdyno.model.plans.plan import Layer
from pgdyno.model.variants.variant import Variant

Point: TypeAlias = Mapping[str, str]
"""A configuration: keys of dimensions with their values; what is not named is left as it was found."""

BUILD = "build"
"""The key of the dimension whose values are builds of PostgreSQL, by name."""


@dataclass(frozen=True)
class Dimension:
    """One thing that may be varied: ``key`` is a variant's, or ``BUILD``.

    ``values`` are its other values than the one found, in ascending order where it is a number; ``found`` is
    for people. ``planned`` is the plan's value, None if the plan leaves it alone. ``worth`` is the largest
    share of a transaction's time that it could save, by the profile; 0 if that says nothing.
    """

    key: str
    layer: Layer
    values: tuple[str, ...]
    found: str
    planned: str | None = None
    worth: float = 0.0


@dataclass(frozen=True)
class Space:
    """All dimensions, those first that the profile says matter most.

    ``kept`` are planned values that every candidate has: a search is too short to judge them.
    """

    dimensions: tuple[Dimension, ...]
    kept: Point = field(default_factory=dict)

    @property
    def plan(self) -> Point:
        """The plan's point, without the kept values."""
        return {one.key: one.planned for one in self.dimensions if one.planned is not None}

    @property
    def points(self) -> int:
        """How many points there are."""
        count = 1
        for one in self.dimensions:
            count *= 1 + len(one.values)
        return count


def at_point(base: Variant, name: str, point: Point) -> Variant:
    """Return a point as a variant of the configuration as found."""
    settings = {key: value for key, value in point.items() if key != BUILD}
    return replace(
        base,
        name=name,
        settings={**base.settings, **settings},
        server=point.get(BUILD, base.server),
    )
