"""Drivers on other hosts have their turns one by one, all at once, while servers are read here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from pgdyno.base.errors import GeneratorFailedError, LoadHostLostError
from pgdyno.load.driver_process import DriverJob, DriverProcess
from pgdyno.load.hosts_turns import HostsTurns
from pgdyno.model.experiments.slices import HostLog

MS = 1_000_000
DAY = 86_400_000 * MS
YEAR_2023 = 1_700_000_000_000 * MS
TURN = {"event": "slice", "server_cpu_ns": [], "client_cpu_ns": 2000}
PHASE = {"arms": [{"name": "a", "roles": [{"transactions": 1, "errors": []}]}]}


class Clock:
    """Ours; whoever waits puts it on."""

    def __init__(self) -> None:
        self.now_ns = 0

    def read(self) -> int:
        return self.now_ns


class Far:
    """A driver on a host whose clock differs from ours. It has its turns as it is asked to."""

    def __init__(
        self, name: str, clock: Clock, happened: list[str], way_ms: int = 0, ahead_ns: int = 0
    ) -> None:
        self.name, self.clock, self.happened = name, clock, happened
        self.way_ns, self.ahead_ns, self.heard_ns = way_ms * MS, ahead_ns, 0
        self.asked: list[dict[str, Any]] = []
        self.events: list[tuple[int, Mapping[str, Any]]] = []
        self.turned: Mapping[str, Any] = {}
        self.is_gone = self.is_stuck = False

    def begin(self) -> None:
        self.happened.append(f"reach {self.name}")

    def give(self, job: str) -> None:
        self.happened.append(f"{self.name} has {job}")

    def await_ready(self) -> None:
        self.happened.append(f"{self.name} is ready")

    def send(self, command: dict[str, Any]) -> None:
        self.happened.append(f"tell {self.name}")
        self.asked.append(command)
        start_ns = self.clock.now_ns + self.way_ns + int(command["delay_s"] * 1e9)
        end_ns = start_ns + int(command["slice_s"] * 1e9)
        times = {"start_ns": start_ns, "end_ns": end_ns, "drained_ns": end_ns + 10 * MS}
        seen = {name: at_ns + self.ahead_ns for name, at_ns in times.items()}
        back_ns = end_ns + 10 * MS + self.way_ns
        event = {**TURN, "arm": command["order"][0], **seen, **self.turned}
        self.events += [(back_ns, event), (back_ns, {"event": "turns-ended"})]

    def receive(self, timeout_s: float) -> Mapping[str, Any]:
        assert timeout_s > 60  # the driver's own limit
        if self.is_stuck:
            raise self.failure("its transactions do not end")
        self.heard_ns, event = self.events.pop(0)
        self.clock.now_ns = max(self.clock.now_ns, self.heard_ns)
        return event

    def expect(self, kind: str, event: Mapping[str, Any]) -> Mapping[str, Any]:
        assert event["event"] == kind
        return event

    def stop(self) -> Mapping[str, Any]:
        self.happened.append(f"stop {self.name}")
        return PHASE

    def close(self) -> None:
        self.happened.append(f"kill {self.name}")

    def failure(self, why: str) -> GeneratorFailedError:
        return GeneratorFailedError(f"{self.name}: {why}")

    def lost(self, why: str) -> GeneratorFailedError:
        return LoadHostLostError(f"{self.name}: {why}", host=self.name)


class Reading:
    """Servers whose CPU time is read here, by a clock that each reading puts on by 15 ms."""

    pids = ((11, 12), (21,))

    def __init__(self, clock: Clock, happened: list[str]) -> None:
        self.clock, self.happened = clock, happened
        self.cpu_ns = iter([(1000, 5000), (3000, 9000), (4000, 9500), (4100, 9700)])

    def read_cpu_ns(self) -> tuple[int, ...]:
        self.happened.append("read")
        self.clock.now_ns += 15 * MS
        return next(self.cpu_ns)


class Cell:
    """Turns of one host or more."""

    def __init__(self, ways_ms: Sequence[int], logs: Path = Path(), delay_s: float = 0.0) -> None:
        self.clock, self.happened = Clock(), list[str]()
        self.hosts = [
            Far(f"client{number}", self.clock, self.happened, way_ms, number * DAY)
            for number, way_ms in enumerate(ways_ms, 1)
        ]
        drivers = [
            DriverJob(
                cast("DriverProcess", one), f"job of {one.name}", [logs / f"{arm}.{number}" for arm in "ab"]
            )
            for number, one in enumerate(self.hosts)
        ]
        self.turns = HostsTurns(drivers, [1, 0], delay_s, now_ns=self.clock.read, epoch_ns=YEAR_2023)
        self.servers = Reading(self.clock, self.happened)


def test_all_hosts_are_told_at_once_and_servers_are_read_while_all_rest() -> None:
    cell = Cell([0, 0])
    cell.turns.warm_up(1, 2.0)
    connected = ["reach client1", "reach client2", "client1 has job of client1", "client2 has job of client2"]
    told = ["tell client1", "tell client2"]
    assert cell.happened == [*connected, "client1 is ready", "client2 is ready", *told]
    cell.happened.clear()
    taken = list(cell.turns.take([0, 1], slice_s=0.05, head_s=0.0, servers=cell.servers))
    assert [one.arm for one in taken] == [0, 1]
    assert cell.happened == ["read", *told, "read"] * 2
    for host in cell.hosts:
        assert [asked["order"] for asked in host.asked] == [[0], [1], [0]]  # their numbers in the job
        assert [asked["pids"] for asked in host.asked] == [[]] * 3  # of this host: others have the same there


def test_the_counted_part_has_its_share_of_what_was_used_from_reading_to_reading() -> None:
    cell = Cell([0])
    # The turn takes 70 ms and its end 10, the readings 30 more: 55 of 110 ms are counted.
    (taken,) = cell.turns.take([1], slice_s=0.07, head_s=0.015, servers=cell.servers)
    assert taken.server_cpu_ns == (1000, 2000)
    assert taken.apart_ns is None


def test_a_turn_that_lasts_longer_there_than_here_has_no_more_than_was_used() -> None:
    cell = Cell([0])
    cell.hosts[0].turned = {"end_ns": 1 << 62, "drained_ns": 1 << 62}
    (taken,) = cell.turns.take([1], slice_s=0.05, head_s=0.0, servers=cell.servers)
    assert taken.server_cpu_ns == (2000, 4000)


def test_how_far_apart_hosts_may_have_begun_is_the_longest_way_there_and_back() -> None:
    cell = Cell([1, 4])
    (taken,) = cell.turns.take([1], slice_s=0.05, head_s=0.0, servers=cell.servers)
    assert taken.apart_ns == 8 * MS
    assert taken.start_ns == YEAR_2023 + 15 * MS  # by our clock, when they were told


def test_the_time_that_all_wait_before_a_turn_is_not_apart() -> None:
    cell = Cell([1, 4], delay_s=0.02)
    (taken,) = cell.turns.take([1], slice_s=0.05, head_s=0.0, servers=cell.servers)
    assert taken.apart_ns == 8 * MS
    assert taken.start_ns == YEAR_2023 + 35 * MS


def test_each_hosts_time_and_log_are_its_own(tmp_path: Path) -> None:
    cell = Cell([1, 4], tmp_path)
    cell.turns.warm_up(1, 0.05)
    assert cell.turns.client_cpu_us(1) == (2.0, 2.0)
    assert cell.turns.client_cpu_us(0) is None
    (tmp_path / "b.0.7").write_bytes(b"first\n")
    (tmp_path / "b.1.7").write_bytes(b"second\n")
    cell.turns.end()
    assert cell.happened[-2:] == ["stop client1", "stop client2"]
    began_ns = DAY + 1 * MS, 2 * DAY + 4 * MS
    first, second = (((began, YEAR_2023 - began),) for began in began_ns)
    assert cell.turns.logs(1) == [HostLog(b"first\n", first), HostLog(b"second\n", second)]
    assert cell.turns.logs(0) == [HostLog(b"", first), HostLog(b"", second)]


def test_a_turn_that_was_not_asked_for_is_told_with_the_host() -> None:
    cell = Cell([0, 0])
    cell.hosts[1].turned = {"arm": 0}  # the other one, by its number in the job
    with pytest.raises(GeneratorFailedError) as caught:
        list(cell.turns.take([0], slice_s=0.05, head_s=0.0, servers=cell.servers))
    assert caught.value.message == "client2: it reports a turn of arm '0' instead of arm 1"


def test_a_host_that_is_gone_is_to_blame_for_what_others_wait_for() -> None:
    cell = Cell([0, 0])
    cell.turns.warm_up(1, 0.05)
    cell.hosts[0].is_stuck = True
    with pytest.raises(GeneratorFailedError, match="client1: its transactions do not end"):
        cell.turns.warm_up(1, 0.05)
    cell.hosts[1].is_gone = True
    with pytest.raises(LoadHostLostError) as caught:
        cell.turns.warm_up(1, 0.05)
    assert caught.value.host == "client2"
    assert caught.value.message == "client2: it ended before it was stopped"


def test_all_hosts_are_given_up_together() -> None:
    cell = Cell([0, 0])
    cell.turns.close()
    assert cell.happened == ["kill client1", "kill client2"]
