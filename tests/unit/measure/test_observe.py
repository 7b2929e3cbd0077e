"""Stretches in which one server alone has load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest
from tests.fix_rounds import running_in
from tests.unit.measure.test_rounds import READS, WRITES, Seats

from pgdyno.load.turns import Turns
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.measure.observe import Observer, observe_block, observe_stretches
from pgdyno.model.experiments.experiment import STRETCH_ROUNDS, Design
from pgdyno.model.experiments.slices import Slice
from pgdyno.model.experiments.statements import StatementCount
from pgdyno.model.variants.variant import Variant

if TYPE_CHECKING:
    from pgdyno.measure.statement_counting import StatementCounting

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


COUNT = StatementCount(1, 1.0, 1, 1, 0)


@dataclass
class Counted(Recorded):
    """An arm that also counts statements, and turns of any number in one command."""

    counts: dict[str, StatementCount] | None = None
    pid: int = 0

    def take(self, order: Sequence[int], *, slice_s: float, **_: object) -> Iterator[Slice]:
        self.events.append("command")
        for number, arm in enumerate(order):
            self.events.append("turn")
            yield Slice(arm, number, number + 1, (0, 0), number + 1)

    def begin(self) -> None:
        self.events.append("begin")

    def end(self, _: None) -> dict[str, StatementCount] | None:
        self.events.append("end")
        return self.counts


@pytest.mark.parametrize(("counts", "is_known"), [({"x": COUNT}, True), (None, False)])
def test_servers_rest_while_their_counts_are_read(
    counts: dict[str, StatementCount] | None, *, is_known: bool
) -> None:
    events: list[str] = []
    arms = [Counted(Variant("a"), events, counts), Counted(Variant("b"), events, {"x": COUNT})]
    statements = cast("list[StatementCounting]", arms)
    observer = Observer(
        Design(block_s=16.0, slice_s=1.0), (), SPLIT, np.random.default_rng(1), statements=statements
    )
    kept: list[Slice] = []
    found = observe_block(observer, cast("list[Arm]", arms), cast("Turns", arms[0]), kept.append)
    # A quarter of 16 turns, in a command of its own: the driver rests after it.
    first = ["begin", "begin", "command", *["turn"] * 4, "end", "end"]
    assert events == [*first, "command", *["turn"] * 12]
    assert len(found.slices) == len(kept) == 16
    assert [one.steal_share is not None for one in found.slices] == [False, False, False, True] * 4
    assert found.statements == (({"x": COUNT}, {"x": COUNT}) if is_known else ())
    assert found.has_evicted is not is_known
    assert found.rested_s > 0
