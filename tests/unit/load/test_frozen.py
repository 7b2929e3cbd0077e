"""Turns of frozen programs last as long as they should, whatever is done to the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from pgdyno.load import frozen
from pgdyno.load.frozen import FrozenTurns


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
    monkeypatch.setattr(frozen, "time", clock)
    for load in taken(clock, [0, 1]):
        begun_s, ended_s = load.moments
        assert ended_s - begun_s == pytest.approx(0.5)
