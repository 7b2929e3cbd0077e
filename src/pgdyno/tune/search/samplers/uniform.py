"""Random points: each value of a dimension, including the original one, is equally likely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator as Random

from pgdyno.model.tuning.tuning import Point, Space, Trial

NAME = "random"


@dataclass(frozen=True)
class _Uniform:
    space: Space
    random: Random

    def ask(self) -> Point:
        """Return the next point."""
        chosen = ((one.key, self.random.integers(-1, len(one.values))) for one in self.space.dimensions)
        values = {one.key: one.values for one in self.space.dimensions}
        return {key: values[key][index] for key, index in chosen if index >= 0}

    def tell(self, trial: Trial) -> None:
        """Learn nothing."""


def make(space: Space, seed: int) -> _Uniform:
    """Return the sampler."""
    return _Uniform(space, np.random.default_rng(seed))
