"""The space of a search: dimensions, and their possible values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pgdyno.model.plans.plan import Layer
from pgdyno.model.variants.variant import Variant

Point: TypeAlias = Mapping[str, str]
"""A configuration: values by the keys of dimensions; other dimensions keep their original values."""

BUILD = "build"
"""Key of the dimension of PostgreSQL builds; its values are their names."""


@dataclass(frozen=True)
class Dimension:
    """One dimension: ``key`` is a variant's, or ``BUILD``.

    ``values`` are the candidate values without the original one, in ascending order if numeric; ``found`` is
    the original value for display. ``planned`` is the plan's value, None if the plan does not change it.
    ``worth`` is the largest share of a transaction's time that it could save according to the profile; 0:
    unknown. ``brings`` are settings that matter only together with this one: they are set whenever it is,
    and are not dimensions.
    """

    key: str
    layer: Layer
    values: tuple[str, ...]
    found: str
    planned: str | None = None
    worth: float = 0.0
    brings: Point = field(default_factory=dict)


@dataclass(frozen=True)
class Space:
    """All dimensions, in decreasing order of importance by the profile.

    ``kept`` are planned values that every candidate has: a search is too short to evaluate them.
    """

    dimensions: tuple[Dimension, ...]
    kept: Point = field(default_factory=dict)

    @property
    def plan(self) -> Point:
        """The plan's point, without the kept values."""
        return {one.key: one.planned for one in self.dimensions if one.planned is not None}

    def whole(self, point: Point) -> Point:
        """Return a point with the kept values, and with the settings that its dimensions bring."""
        brought = [one.brings for one in self.dimensions if one.key in point]
        return {**self.kept, **{key: value for each in brought for key, value in each.items()}, **point}

    @property
    def points(self) -> int:
        """The number of points."""
        count = 1
        for one in self.dimensions:
            count *= 1 + len(one.values)
        return count


def at_point(base: Variant, name: str, point: Point) -> Variant:
    """Return a point as a variant of the original configuration."""
    settings = {key: value for key, value in point.items() if key != BUILD}
    return replace(
        base,
        name=name,
        settings={**base.settings, **settings},
        server=point.get(BUILD, base.server),
    )
