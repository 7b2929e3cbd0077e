"""Begin a search with earlier configurations: mapped to its own space, without their figures. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pgdyno.model.tuning.space import Dimension, Point, Space
from pgdyno.model.tuning.tuning import Trial
from pgdyno.tune.search.samplers._contract import Sampler

NumberOf: TypeAlias = Callable[[str, str], float | None]
"""Returns the number denoted by a key's value, in the unit of the key; None if it is not a number."""


@dataclass
class FirstPoints:
    """A sampler that returns given points before those of another sampler."""

    others: Sampler
    waiting: list[Point]

    def ask(self) -> Point:
        """Return the next given point, else the other sampler's."""
        return self.waiting.pop(0) if self.waiting else self.others.ask()

    def tell(self, trial: Trial) -> None:
        """Forward the trial to the other sampler."""
        self.others.tell(trial)


def point_within(space: Space, settings: Mapping[str, str], number_of: NumberOf) -> Point:
    """Return the point of a space that is most similar to these settings; numbers map to the nearest value.

    A setting keeps its original value if that is the nearest, or if the space does not contain the setting.
    """
    found = {
        one.key: _value(one, settings[one.key], number_of) for one in space.dimensions if one.key in settings
    }
    return {key: value for key, value in found.items() if value is not None}


def _value(dimension: Dimension, wanted: str, number_of: NumberOf) -> str | None:
    if wanted in dimension.values:
        return wanted
    number = number_of(dimension.key, wanted)
    if number is None:
        return None
    known = {value: number_of(dimension.key, value) for value in (*dimension.values, dimension.found)}
    far = {value: _distance(number, other) for value, other in known.items() if other is not None}
    nearest = min(far, key=far.__getitem__, default=None)
    return nearest if nearest in dimension.values else None


def _distance(a: float, b: float) -> float:
    """Return the distance of two numbers: as a log-ratio if both are positive."""
    if a > 0 and b > 0:
        return abs(math.log(a / b))
    return 0.0 if a == b else math.inf
