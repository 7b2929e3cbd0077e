"""What others took of the CPUs in each window of turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from pgdyno.app.arenas.arm import Arm
from pgdyno.app.measuring import rounds
from pgdyno.app.measuring.cpu_reading import CpuReading
from pgdyno.experiments.design.isolation import CpuSplit
from pgdyno.generators.turns import Turns
from pgdyno.model.experiments.experiment import Design, Slice
from pgdyno.model.hosts.host_cpu import HostCpu

SPLIT = CpuSplit((0,), (1,), is_isolated=True)
LAST = Slice(0, 1, 2, (3, 4))


def reading(at_s: float, busy_s: float, steal_s: float, ours_s: float) -> CpuReading:
    return CpuReading(HostCpu(at_s, busy_s, steal_s), ours_s, cpus=2)


def test_shares_are_of_the_time_of_all_cpus() -> None:
    # In 2 s of 2 CPUs: 1 s stolen, 2.4 s busy of which 2 s are ours.
    closed = reading(10, 100, 5, 50).closing(LAST, reading(12, 102.4, 6, 52))
    assert (closed.arm, closed.start_ns, closed.end_ns, closed.server_cpu_ns) == (0, 1, 2, (3, 4))
    assert closed.steal_share == pytest.approx(0.25)
    assert closed.foreign_cpu_share == pytest.approx(0.1)


def test_ticks_that_lag_behind_our_own_clocks_are_no_negative_share() -> None:
    closed = reading(0, 0, 0, 0).closing(LAST, reading(1, 1.0, 0, 1.03))
    assert closed.foreign_cpu_share == 0.0


@dataclass
class NoServer:
    """An arm whose server runs on another host, with a load that uses no time."""

    def server_pids(self) -> tuple[int, ...]:
        return ()

    def client_cpu_us(self) -> tuple[float, ...]:
        return (0.0,)


def test_a_reading_counts_ourselves_among_ours() -> None:
    first = CpuReading.read([cast("Arm", NoServer())], SPLIT)
    spent = sum(i * i for i in range(300_000))  # some milliseconds of our own
    later = CpuReading.read([cast("Arm", NoServer())], SPLIT)
    assert spent > 0
    assert later.ours_s > first.ours_s
    assert later.host.at_s > first.host.at_s
    assert later.cpus == 2


@dataclass
class BusyLoad(NoServer):
    """The same with a load that has used an hour."""

    def client_cpu_us(self) -> tuple[float, ...]:
        return (1.2e9, 2.4e9)


def test_the_time_of_a_load_host_is_none_of_ours() -> None:
    elsewhere = CpuSplit((0, 1), (), is_isolated=True, load_host_threads=(2, 2))
    assert CpuReading.read([cast("Arm", BusyLoad())], SPLIT).ours_s > 3600
    assert CpuReading.read([cast("Arm", BusyLoad())], elsewhere).ours_s < 3600


class FakeTurns:
    """Turns that take no time."""

    def take(self, order: Sequence[int], **_: object) -> Iterator[Slice]:
        return (Slice(arm, i, i + 1, (0, 0)) for i, arm in enumerate(order))


def test_the_last_slice_of_each_window_has_its_shares_and_is_stored_with_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Each reading comes a second after the one before; the n-th second loses n tenths of two CPUs.
    at = count()

    def read(*_: object) -> CpuReading:
        n = next(at)
        return reading(n, 0.0, 0.2 * n * (n + 1) / 2, 0.0)

    monkeypatch.setattr(CpuReading, "read", read)
    arms: list[Any] = [NoServer(), NoServer()]
    running: Any = SimpleNamespace(
        design=Design(block_s=3.0),
        random=np.random.default_rng(1),
        meters=(),
        arena=SimpleNamespace(loads=SimpleNamespace(split=SPLIT)),
    )
    kept: list[Slice] = []
    observed = rounds._observe_block(running, arms, cast("Turns", FakeTurns()), kept.append)
    assert tuple(kept) == observed.slices
    shares = {i: one.steal_share for i, one in enumerate(kept) if one.steal_share is not None}
    assert shares == pytest.approx({19: 0.1, 39: 0.2, 59: 0.3})
