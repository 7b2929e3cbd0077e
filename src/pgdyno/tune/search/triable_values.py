"""Values of a space that may be tried: those that are refused even alone are taken out of it. Pure.

A value is judged as the only difference from the plan, which is where searches begin; where the plan itself
is refused, from the configuration as found. The plan's own values stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pgdyno.model.tuning.space import Dimension, Space
from pgdyno.tune.search.searching import WhyNot


@dataclass(frozen=True)
class RefusedValue:
    """A value that was taken out, and why."""

    key: str
    value: str
    reason: str


def triable(space: Space, why_not: WhyNot) -> tuple[Space, tuple[RefusedValue, ...]]:
    """Return the space without values that are refused alone, and these."""
    start = {} if why_not(space.plan) else space.plan
    refused = {
        (one.key, value): reason
        for one in space.dimensions
        for value in one.values
        if value != one.planned and (reason := why_not({**start, one.key: value}))
    }

    def left(one: Dimension) -> Dimension:
        return replace(one, values=tuple(value for value in one.values if (one.key, value) not in refused))

    dimensions = tuple(one for one in map(left, space.dimensions) if one.values)
    found = tuple(RefusedValue(key, value, reason) for (key, value), reason in refused.items())
    return replace(space, dimensions=dimensions), found
