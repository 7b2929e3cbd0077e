"""What the driver says of a turn is kept with its slice."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from pgdyno.app.arenas.arm import ServerClocks
from pgdyno.generators.drained import DrainedTurns
from pgdyno.generators.driver_process import Distance, DriverProcess
from pgdyno.model.experiments.experiment import Slice

TURN = {
    "event": "slice",
    "arm": 1,
    "start_ns": 100,
    "end_ns": 150,
    "drained_ns": 162,
    "server_cpu_ns": [3, 40],
    "client_cpu_ns": 2000,
}


class Telling:
    """A driver that has had one turn."""

    is_started = True
    distance: Distance | None = None

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = [TURN, {"event": "turns-ended"}]
        self.asked: list[dict[str, Any]] = []

    def send(self, command: dict[str, Any]) -> None:
        assert command["do"] == "turns"
        self.asked.append(command)

    def receive(self, timeout_s: float) -> dict[str, Any]:
        assert timeout_s > 60  # the driver's own limit
        return self.events.pop(0)

    def expect(self, kind: str, event: dict[str, Any]) -> None:
        assert event["event"] == kind


def test_a_slice_has_its_edges_and_the_end_of_its_last_transaction() -> None:
    turns = DrainedTurns(cast("DriverProcess", Telling()), "", [Path("a"), Path("b")], [0, 1])
    taken = turns.take([1], slice_s=0.05, head_s=0.0, servers=ServerClocks([], []))
    assert list(taken) == [Slice(1, 100, 150, (3, 40), drained_ns=162)]
    assert turns.client_cpu_us(1) == 2.0


def test_arms_keep_their_numbers_whatever_order_they_are_connected_in() -> None:
    driver = Telling()
    turns = DrainedTurns(cast("DriverProcess", driver), "", [Path("a"), Path("b"), Path("c")], [2, 0, 1])
    (taken,) = turns.take([0, 1, 2, 0], slice_s=0.05, head_s=0.0, servers=ServerClocks([], []))
    assert driver.asked[0]["order"] == [1, 2, 0, 1]
    assert taken.arm == 0
    assert turns.client_cpu_us(0) == 2.0
    assert turns.client_cpu_us(1) is None


class Reading:
    """Servers whose CPU time is read here."""

    pids = ((11, 12), (21,))

    def __init__(self) -> None:
        self.readings = [(1000, 5000), (1007, 5300)]

    def read_cpu_ns(self) -> tuple[int, ...]:
        return self.readings.pop(0)


def test_servers_are_read_here_where_the_driver_is_on_another_host() -> None:
    driver = Telling()
    driver.distance = Distance("client1", b"", "hello", [])
    turns = DrainedTurns(cast("DriverProcess", driver), "", [Path("a"), Path("b")], [0, 1])
    (taken,) = turns.take([1], slice_s=0.05, head_s=0.0, servers=Reading())
    assert driver.asked[0]["pids"] == []  # of this host: others have the same numbers there
    assert taken == Slice(1, 100, 150, (7, 300), drained_ns=162)
