"""The values of a space that may be tried: values that are refused even alone are removed. Pure.

A value is judged as the only difference from the plan, where searches begin; if the plan itself is refused,
from the original configuration. The plan's own values are never removed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pgdyno.model.tuning.space import Dimension, Space
from pgdyno.tune.search.searching import WhyNot


@dataclass(frozen=True)
class RefusedValue:
    """A removed value, with the reason."""

    key: str
    value: str
    reason: str


def triable(space: Space, why_not: WhyNot) -> tuple[Space, tuple[RefusedValue, ...]]:
    """Return the space without values that are refused alone, and the refused values."""
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
