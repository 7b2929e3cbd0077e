"""Cells that are refused before any host is asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fix_progress import Remembered
from tests.unit.measure.arenas.test_on_load_hosts import THERE

from pgdyno.base.errors import RemoteHostError, UsageError
from pgdyno.model.cells.cell import CellHost, CellHosts, HostRole
from pgdyno.model.cells.check import ClockOffset
from pgdyno.remote.answers import FactsAnswer
from pgdyno.remote.cells.findings import difference
from pgdyno.remote.cells.reach import (
    OWN_SYSBENCH,
    ClockExchange,
    ReachedLoadHost,
    _explained,
    _usable,
    await_host,
    clock_offset,
    reach_load_hosts,
    sent_driver,
)

DRIVER = sent_driver(Path("pgdyno-driver"))
SERVER = CellHost("db1", HostRole.SERVER, "db1")
LOAD = CellHost("client1", HostRole.LOAD, "client1")


def refused(*loads: CellHost, address: str | None = "198.51.100.7") -> UsageError:
    cell = CellHosts(replace(SERVER, address=address), loads)
    with pytest.raises(UsageError) as caught:
        reach_load_hosts(cell, DRIVER, Remembered())
    return caught.value


def test_a_server_on_another_machine_is_refused() -> None:
    error = refused(LOAD)
    assert error.message == "db1 (198.51.100.7) is not this machine"
    assert error.detail == "servers under test listen on it for load hosts"
    assert error.hint == "correct address in [hosts.db1]: it must belong to the server's host"


def test_the_servers_address_has_to_be_named() -> None:
    error = refused(LOAD, address=None)
    assert error.message == "hosts.toml has no address of db1 for load hosts"
    assert error.hint == "add it to [hosts.db1]: address = …"


def test_an_address_that_no_other_host_reaches_is_refused() -> None:
    error = refused(LOAD, address="127.0.1.1")
    assert error.message == "other hosts cannot reach db1 at 127.0.1.1"
    assert error.detail == "it is a loopback address"
    assert error.hint == "set a routable address in [hosts.db1]: address = …"


def test_an_address_of_one_network_card_is_refused() -> None:
    error = refused(LOAD, address="fe80::1%lo")
    assert error.message.startswith("other hosts cannot reach db1 at fe80::1")
    assert error.detail == (
        "it is a link-local address, which is valid only with a host's own network interface"
    )


def test_a_name_that_is_unknown_is_refused() -> None:
    assert refused(LOAD, address="no-such-name.invalid").message.startswith(
        "could not listen on db1 (no-such-name.invalid): "
    )


OURS = FactsAnswer(
    host_name="db1",
    user="ada",
    sudo="",
    address="10.0.0.1",
    boot_id="a",
    kernel="6.1",
    machine="x86_64",
    cpu_model="",
    cpus=[0, 1],
    memory_bytes=1 << 30,
    python="3.11",
    is_synchronised=True,
    postgresql=[],
    pgdyno=None,
)
THEIRS = OURS.model_copy(update={"boot_id": "b", "cpus": [0, 2, 3]})


def test_a_load_host_has_all_its_cpus_unless_the_file_names_some() -> None:
    assert _usable(LOAD, THEIRS, OURS, DRIVER) == (0, 2, 3)
    assert _usable(replace(LOAD, cpus=(2,)), THEIRS, OURS, DRIVER) == (2,)


@pytest.mark.parametrize(
    ("host", "change", "said"),
    [
        (LOAD, {"boot_id": "a"}, "client1 is this machine: its load would take CPU time from the server"),
        (
            LOAD,
            {"machine": "riscv64"},
            "pgdyno-driver does not run on client1: its machine type is riscv64, not x86_64",
        ),
        (
            replace(LOAD, cpus=(1, 2, 4)),
            {},
            "hosts.toml names CPUs of client1 that are not available: 1, 4",
        ),
    ],
)
def test_a_load_host_that_cannot_issue_load_is_refused(
    host: CellHost, change: dict[str, str], said: str
) -> None:
    with pytest.raises(RemoteHostError) as caught:
        _usable(host, THEIRS.model_copy(update=change), OURS, DRIVER)
    assert caught.value.message == said


def test_sysbench_may_run_on_a_load_host_of_another_architecture() -> None:
    assert _usable(LOAD, THEIRS.model_copy(update={"machine": "riscv64"}), OURS, OWN_SYSBENCH) == (0, 2, 3)


def test_a_load_host_without_sysbench_is_told() -> None:
    error = explained("sysbench is not installed on this host: it is not on the PATH (/usr/bin:/bin)\n")
    assert error.message == "sysbench is not installed on client1"
    assert error.detail == "it is not on the PATH (/usr/bin:/bin)"
    assert error.hint == (
        "install it there (apt install sysbench), or issue the same transactions with pgdyno's own driver: "
        "--generator driver"
    )


def test_a_sysbench_that_does_not_run_is_told_with_its_words() -> None:
    error = explained("sysbench does not run on this host: libpq.so.5: cannot open shared object file\n")
    assert error.message == "sysbench does not run on client1"
    assert error.detail == "libpq.so.5: cannot open shared object file"
    assert error.hint == "try it by hand: ssh client1 sysbench --version"


def test_the_results_say_which_sysbench_has_issued_the_load() -> None:
    own = (LOAD, None, "10.0.0.1", "10.0.0.2", (0, 1), 0.0001, 0.0003, "boot1", "pgdyno-load-7")
    host = ReachedLoadHost(*own, own_program="sysbench 1.0.20")
    assert host.note(2) == (
        'load from "client1" over the network, round trip 100\N{NO-BREAK SPACE}µs; issued by its own '
        "sysbench 1.0.20, unmodified, with a thread for each client, on CPUs that sleep when they are idle"
    )


def explained(detail: str | None, hint: str | None = None) -> RemoteHostError:
    error = RemoteHostError("ssh exited with status 1", detail=detail, hint=hint)
    return _explained(LOAD, None, error, has_begun=False)


def test_an_error_that_has_a_hint_stays_as_it_is() -> None:
    assert explained("words", "do that").message == "ssh exited with status 1"


@pytest.mark.parametrize(
    ("why", "hint"),
    [
        (
            "version `GLIBC_2.34' not found",
            "it needs a C library (glibc) at least as new as this machine's: use such a load host",
        ),
        (
            "Permission denied",
            "its directory for temporary files may be mounted noexec: pgdyno cell check names it",
        ),
    ],
)
def test_a_driver_that_does_not_run_there_is_told_in_one_line(why: str, hint: str) -> None:
    error = explained(f"Welcome!\npgdyno-driver does not run on this host: {why}\nConnection closed.")
    assert error.message == "pgdyno-driver does not run on client1"
    assert (error.detail, error.hint) == (why, hint)


def test_a_host_that_issues_another_load_is_told() -> None:
    said = "another pgdyno issues load from this host, or a disconnected run, which ends by itself: later"
    error = explained(f"{said}\nConnection closed.")
    assert error.message == "client1 already issues another load"
    assert (error.detail, error.hint) == (said, "wait until it has ended")


def test_other_words_have_the_hosts_name_and_a_step() -> None:
    error = explained("oh")
    assert error.message == "client1: ssh exited with status 1: oh"
    assert error.hint == "try it by hand: ssh client1"


NOON_NS = 1_764_158_400_000_000_000  # in 2025: large enough to show that no float carries it


def test_the_exchange_with_the_shortest_way_counts() -> None:
    slow = ClockExchange(NOON_NS, NOON_NS + 9_000_000_000, round_trip_ns=10_000_000)
    # there and back takes 2 ms: its middle is at +1 ms, when the other clock shows +3.001 s
    fast = ClockExchange(NOON_NS, NOON_NS + 3_001_000_000, round_trip_ns=2_000_000)
    assert clock_offset([slow, fast]) == ClockOffset(
        offset_s=3.0, error_s=0.001, round_trip_s=0.002, exchanges=2
    )


def test_the_errors_of_two_offsets_add_up() -> None:
    client, server = ClockOffset(0.003, 0.001, 0.002, 30), ClockOffset(-0.002, 0.0005, 0.001, 30)
    assert difference(client, server) == (0.005, 0.0015)


@given(
    offset_ns=st.integers(-(10**12), 10**12),
    ways_ns=st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1, max_size=10),
)
def test_the_true_offset_is_within_the_error(offset_ns: int, ways_ns: list[tuple[int, int]]) -> None:
    exchanges = [ClockExchange(NOON_NS, NOON_NS + there + offset_ns, there + back) for there, back in ways_ns]
    found = clock_offset(exchanges)
    assert abs(found.offset_s - offset_ns / 1e9) <= found.error_s + 1e-9


class Host:
    """A host that is away for a time. Whoever sleeps puts the clock on."""

    def __init__(self, away_s: float) -> None:
        self.now_s, self.away_s, self.asked = 1000.0, away_s, 0

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def reach(self) -> ReachedLoadHost:
        self.asked += 1
        if self.now_s < 1000.0 + self.away_s:
            raise RemoteHostError("client1: it does not answer")
        return THERE


def test_it_is_asked_every_few_seconds_and_time_left_is_told_now_and_then() -> None:
    host, progress = Host(away_s=35.0), Remembered()
    assert await_host("client1", host.reach, progress, host.clock, host.sleep) is THERE
    assert host.asked == 8  # after 0, 5, … 35 s
    assert progress.steps == ["waiting for client1: client1: it does not answer"] * 3  # after 0, 15, 30 s
    assert progress.advances == [(0.0, 600.0), (15.0, 600.0), (30.0, 600.0)]


def test_after_ten_minutes_it_is_given_up() -> None:
    host = Host(away_s=601.0)
    with pytest.raises(RemoteHostError, match="client1: it does not answer"):
        await_host("client1", host.reach, Remembered(), host.clock, host.sleep)
    assert host.now_s == 1600.0
