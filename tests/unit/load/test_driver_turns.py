"""What the driver says of a turn is kept with its slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.load.driver_process import DriverProcess
from pgdyno.load.driver_turns import DrainedTurns
from pgdyno.measure.arenas.arm import ServerClocks
from pgdyno.model.experiments.slices import Slice

TURN = {
    "event": "slice",
    "arm": 1,
    "start_ns": 100,
    "end_ns": 150,
    "drained_ns": 162,
    "server_cpu_ns": [3, 40],
    "client_cpu_ns": 2000,
}


def turn(arm: int) -> dict[str, Any]:
    return {**TURN, "arm": arm}


class Telling:
    """A driver that has turns as it is asked to, unless it is given other events."""

    is_started = True

    def __init__(self, events: Sequence[Mapping[str, Any]] = ()) -> None:
        self.events = list(events)
        self.asked: list[dict[str, Any]] = []

    def send(self, command: dict[str, Any]) -> None:
        assert command["do"] == "turns"
        self.asked.append(command)
        if not self.events:
            self.events = [*map(turn, command["order"]), {"event": "turns-ended"}]

    def receive(self, timeout_s: float) -> Mapping[str, Any]:
        assert timeout_s > 60  # the driver's own limit
        return self.events.pop(0)

    def expect(self, kind: str, event: dict[str, Any]) -> dict[str, Any]:
        assert event["event"] == kind
        return event

    def stop(self) -> Mapping[str, Any]:
        return self.events.pop(0)

    def failure(self, why: str) -> GeneratorFailedError:
        return GeneratorFailedError(f"client1: {why}")


def turns_of(driver: Telling, order: Sequence[int] = (0, 1)) -> DrainedTurns:
    return DrainedTurns(cast("DriverProcess", driver), "", [Path("a"), Path("b")], order)


def test_a_slice_has_its_edges_and_the_end_of_its_last_transaction() -> None:
    turns = turns_of(Telling())
    taken = turns.take([1], slice_s=0.05, head_s=0.0, servers=ServerClocks([], []))
    assert list(taken) == [Slice(1, 100, 150, (3, 40), drained_ns=162)]
    assert turns.client_cpu_us(1) == (2.0,)


def test_arms_keep_their_numbers_whatever_order_they_are_connected_in() -> None:
    driver = Telling()
    turns = turns_of(driver, [2, 0, 1])
    taken = list(turns.take([0, 1, 2, 0], slice_s=0.05, head_s=0.0, servers=ServerClocks([], [])))
    assert [asked["order"] for asked in driver.asked] == [[1, 2, 0, 1]]
    assert [one.arm for one in taken] == [0, 1, 2, 0]
    assert [turns.client_cpu_us(arm) for arm in range(3)] == [(4.0,), (2.0,), (2.0,)]


def test_a_turn_that_was_not_asked_for_is_told_with_the_host() -> None:
    turns = turns_of(Telling([turn(0)]))
    with pytest.raises(GeneratorFailedError) as caught:
        list(turns.take([1], slice_s=0.05, head_s=0.0, servers=ServerClocks([], [])))
    assert caught.value.message == "client1: it reports a turn of arm '0' instead of arm 1"
