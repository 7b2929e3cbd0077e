"""Stretches in which one server alone has load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import pytest
from tests.fix_rounds import running_in
from tests.unit.measure.test_rounds import READS, WRITES, Seats

from pgdyno.load.turns import Turns
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.measure.observe import Observer, observe_stretches
from pgdyno.model.experiments.experiment import STRETCH_ROUNDS, Design
from pgdyno.model.experiments.slices import Slice
from pgdyno.model.variants.variant import Variant

SPLIT = CpuSplit((0,), (1,), is_isolated=True)
NAMES = ("default", "without-plan_cache_mode", "plan")


@dataclass
class Recorded:
    """An arm and turns that write down what happens to them."""

    variant: Variant
    events: list[str] = field(default_factory=list)

    def server_pids(self) -> tuple[int, ...]:
        return ()

    def client_cpu_us(self) -> tuple[float, ...]:
        return (0.0,)

    def checkpoint(self) -> None:
        self.events.append(f"checkpoint of {self.variant.name}")

    def take(self, order: Sequence[int], *, slice_s: float, **_: object) -> Iterator[Slice]:
        (arm,) = order
        self.events.append(f"{NAMES[arm]} for {slice_s:g} s")
        yield Slice(arm, 0, 1, (0, 0))


@pytest.mark.parametrize("seed", range(4))
def test_the_baseline_and_what_is_applied_have_load_one_after_the_other(seed: int) -> None:
    events: list[str] = []
    arms = [Recorded(Variant(name), events) for name in NAMES]
    observer = Observer(Design(stretch_s=15.0), (), SPLIT, np.random.default_rng(seed))
    taken = observe_stretches(observer, cast("list[Arm]", arms), cast("Turns", arms[0]))
    assert {one.arm for one in taken} == {0, 1}
    first, second = (NAMES[one.arm] for one in taken)
    assert events == [
        f"{first} for 15 s",
        f"checkpoint of {first}",
        f"{second} for 15 s",
        f"checkpoint of {second}",
    ]
    assert all(one.steal_share is not None for one in taken)


def test_they_are_repeated_until_enough_rounds_have_counted_and_not_for_ever() -> None:
    running = running_in(Seats(), design=Design(stretch_s=15.0))
    assert running.has_stretch(WRITES, 2 * STRETCH_ROUNDS - 1)
    assert not running.has_stretch(WRITES, 2 * STRETCH_ROUNDS)
    assert not running.has_stretch(READS, 0)
    running.stretched[WRITES.name] = STRETCH_ROUNDS
    assert not running.has_stretch(WRITES, STRETCH_ROUNDS)
