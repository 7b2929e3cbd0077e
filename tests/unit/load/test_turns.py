"""The machine is switched before every turn, never during one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from pgdyno.load.turns import FrozenTurns, Servers, SwitchedTurns
from pgdyno.model.experiments.slices import HostLog, Slice


class Noted:
    """Turns that only write down what happens."""

    def __init__(self) -> None:
        self.happened: list[str] = []

    def warm_up(self, arm: int, duration_s: float) -> None:
        self.happened.append(f"warm {arm} for {duration_s:g} s")

    def take(
        self, order: Sequence[int], *, slice_s: float, head_s: float, servers: Servers
    ) -> Iterator[Slice]:
        for arm in order:
            self.happened.append(f"turn {arm} of {slice_s:g} s")
            yield Slice(arm, 0, 1, servers.read_cpu_ns())

    def client_cpu_us(self, arm: int) -> tuple[float, ...] | None:
        return (10.0 * arm,)

    def pids(self, arm: int) -> tuple[int, ...]:
        return (100 + arm,)

    def end(self) -> None:
        self.happened.append("end")

    def logs(self, arm: int) -> Sequence[HostLog]:
        return (HostLog(f"log {arm}".encode()),)

    def close(self) -> None:
        self.happened.append("close")


class TwoServers:
    pids = ((1,), (2,))

    def read_cpu_ns(self) -> tuple[int, ...]:
        return (5, 6)


def test_an_arms_turn_begins_with_its_own_switch() -> None:
    inner = Noted()
    turns = SwitchedTurns(inner, [partial(inner.happened.append, f"switch to {arm}") for arm in (0, 1)])
    turns.warm_up(1, 0.5)
    slices = list(turns.take([0, 1, 1], slice_s=0.05, head_s=0.005, servers=TwoServers()))
    turns.end()
    turns.close()
    assert inner.happened == [
        "switch to 1",
        "warm 1 for 0.5 s",
        "switch to 0",
        "turn 0 of 0.05 s",
        "switch to 1",
        "turn 1 of 0.05 s",
        "switch to 1",
        "turn 1 of 0.05 s",
        "end",
        "close",
    ]
    assert slices == [Slice(arm, 0, 1, (5, 6)) for arm in (0, 1, 1)]
    assert (turns.client_cpu_us(1), turns.pids(1)) == ((10.0,), (101,))
    assert turns.logs(1) == (HostLog(b"log 1"),)


@dataclass
class Clock:
    """Both clocks; the wall's is set by ``step_s`` while somebody sleeps."""

    step_s: float
    now_s: float = 100.0
    wall_s: float = 1_800_000_000.0

    def monotonic(self) -> float:
        return self.now_s

    def time_ns(self) -> int:
        return int(self.wall_s * 1e9)

    def sleep(self, duration_s: float) -> None:
        self.now_s += duration_s
        self.wall_s += duration_s + self.step_s


@dataclass
class Load:
    """A program that notes when it is let go and stopped."""

    clock: Clock
    moments: list[float] = field(default_factory=list)

    def thaw(self) -> None:
        self.moments.append(self.clock.monotonic())

    def freeze(self) -> None:
        self.moments.append(self.clock.monotonic())

    def require_running(self) -> None:
        pass


def taken(clock: Clock, order: Sequence[int]) -> list[Any]:
    loads: list[Any] = [Load(clock), Load(clock)]
    servers: Any = SimpleNamespace(read_cpu_ns=lambda: (0, 0))
    assert list(FrozenTurns(loads).take(order, slice_s=0.5, head_s=0.1, servers=servers))
    return loads


@pytest.mark.parametrize("step_s", [0.0, -3600.0, 3600.0])
def test_a_step_of_the_clock_makes_no_turn_longer_or_shorter(
    monkeypatch: pytest.MonkeyPatch, step_s: float
) -> None:
    clock = Clock(step_s)
    monkeypatch.setattr("pgdyno.load.turns.time", clock)
    for load in taken(clock, [0, 1]):
        begun_s, ended_s = load.moments
        assert ended_s - begun_s == pytest.approx(0.5)
