"""A trial is ended as soon as the server goes over a limit."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from tests.fix_servers import wait_until

from pgdyno.load.transaction_log import TransactionLog
from pgdyno.load.turns import Servers
from pgdyno.measure.arenas.arm import Arm, RunningServer
from pgdyno.measure.arenas.limited_load import LimitedTurns, Watch
from pgdyno.model.experiments.slices import Slice
from pgdyno.model.tuning.tuning import OverLimitError, OwnerLimits
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.processes import memory_bytes

LOOKS: list[int] = []


@dataclass(frozen=True)
class Here:
    """A server whose processes are this one and its children; each look at them begins with asking for it."""

    @property
    def pid(self) -> int:
        LOOKS.append(os.getpid())
        return LOOKS[-1]


@dataclass(frozen=True)
class Logged:
    """Turns that log so many transactions of so many ms each, in every turn."""

    path: Path
    count: int
    latency_ms: float

    def warm_up(self, _arm: int, _duration_s: float) -> None:
        self._log(1000, 10_000.0)

    def take(self, order: Sequence[int], **_: Any) -> Iterator[Slice]:
        for arm in order:
            self._log(self.count, self.latency_ms)
            yield Slice(arm, 0, 1, (0,))

    def end(self) -> None:
        self._log(1, self.latency_ms)

    def _log(self, count: int, latency_ms: float) -> None:
        with self.path.open("a") as file:
            file.write(f"0 1 {latency_ms * 1000:.0f} 0 1700000000 42\n" * count)


@dataclass(frozen=True)
class Sorting(Logged):
    """Turns in which this process has 256 MB more for as long as a statement takes: until that is seen."""

    def take(self, order: Sequence[int], **_: Any) -> Iterator[Slice]:
        for arm in order:
            with mmap.mmap(-1, 256 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
                memory.write(b"x" * (256 << 20))
                enough = len(LOOKS) + 2  # where the second one begins, the first has ended
                wait_until(lambda: len(LOOKS) >= enough)  # noqa: B023 — it is called at once
            yield Slice(arm, 0, 1, (0,))


def limited(
    directory: Path,
    limits: OwnerLimits,
    *,
    count: int,
    latency_ms: float,
    kind: type[Logged] = Logged,
    is_exempt: bool = False,
) -> LimitedTurns:
    turns = kind(directory / "log.0", count, latency_ms)
    arm = Arm(Variant("candidate"), cast("RunningServer", Here()))
    watch = Watch(limits, "shop", arm, TransactionLog(directory / "log"), is_exempt=is_exempt)
    return LimitedTurns(cast("Any", turns), {0: watch})


def taken(turns: LimitedTurns) -> int:
    """Return how many of ten turns were given."""
    turns.warm_up(0, 1.0)
    return sum(1 for _ in turns.take([0] * 10, slice_s=1.0, head_s=0.0, servers=cast("Servers", None)))


def test_the_turn_after_which_the_percentile_is_sure_to_be_over_it_is_the_last(tmp_path: Path) -> None:
    turns = limited(tmp_path, OwnerLimits(latency_ms=20.0), count=40, latency_ms=30.0)
    with pytest.raises(OverLimitError) as caught:
        taken(turns)
    assert caught.value.variant == "candidate"
    assert caught.value.reason.startswith("the 99th percentile of shop was 30")
    assert (tmp_path / "log.0").read_text().count("\n") == 1000 + 40


def test_transactions_of_the_warm_up_and_within_the_limit_end_nothing(tmp_path: Path) -> None:
    turns = limited(tmp_path, OwnerLimits(latency_ms=20.0), count=40, latency_ms=19.0)
    assert taken(turns) == 10
    turns.end()


def test_of_few_transactions_the_second_one_over_the_limit_ends_the_trial(tmp_path: Path) -> None:
    turns = limited(tmp_path, OwnerLimits(latency_ms=20.0), count=1, latency_ms=30.0)
    with pytest.raises(OverLimitError, match="the 99th percentile of shop was 30"):
        taken(turns)
    assert (tmp_path / "log.0").read_text().count("\n") == 1000 + 2


def test_a_single_transaction_is_looked_at_when_the_load_has_ended(tmp_path: Path) -> None:
    turns = limited(tmp_path, OwnerLimits(latency_ms=20.0), count=0, latency_ms=30.0)
    assert taken(turns) == 10
    with pytest.raises(OverLimitError, match="the 99th percentile of shop was 30"):
        turns.end()


def test_memory_is_looked_at_before_the_first_turn(tmp_path: Path) -> None:
    turns = limited(tmp_path, OwnerLimits(memory_bytes=1 << 20), count=1, latency_ms=1.0)
    with pytest.raises(OverLimitError, match=r"the server had .* in memory, and --limit-memory is 1"):
        turns.warm_up(0, 1.0)


def test_memory_that_a_statement_has_given_back_is_seen(tmp_path: Path) -> None:
    limits = OwnerLimits(memory_bytes=memory_bytes([os.getpid()]) + (128 << 20))
    turns = limited(tmp_path, limits, count=0, latency_ms=1.0, kind=Sorting)
    with pytest.raises(OverLimitError, match=r"the server had .* in memory"):
        next(iter(turns.take([0], slice_s=1.0, head_s=0.0, servers=cast("Servers", None))))


def test_the_configuration_as_found_ends_nothing(tmp_path: Path) -> None:
    limits = OwnerLimits(latency_ms=20.0, memory_bytes=1 << 20)
    turns = limited(tmp_path, limits, count=200, latency_ms=30.0, is_exempt=True)
    assert taken(turns) == 10
    turns.end()
