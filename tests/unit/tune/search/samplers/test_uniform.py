"""Random points: every value of a dimension, and the original one, are equally frequent."""

from __future__ import annotations

from collections import Counter

from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.tuning import Dimension, Space
from pgdyno.tune.search.samplers.uniform import make


def test_values_and_the_original_are_drawn_alike() -> None:
    space = Space((Dimension("work_mem", Layer.APPLICATION, ("8MB", "64MB", "1GB"), "8MB"),))
    sampler = make(space, 7)
    drawn = Counter(sampler.ask().get("work_mem") for _ in range(4000))
    assert set(drawn) == {None, "8MB", "64MB", "1GB"}
    assert all(900 < count < 1100 for count in drawn.values())  # 3.6 standard deviations of 27 around 1000
