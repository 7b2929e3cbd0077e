"""Ways between the hosts of a cell, and their clocks, as ``pgdyno cell check`` finds them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fix_cell import NamespaceCell, NamespaceHost, planted, slow_way
from tests.fix_cell_check import (
    LOAD,
    assert_nothing_is_left,
    check,
    checked_cell,
    obstacle,
    rare,
    tables,
)
from tests.fix_servers import wait_until

pytestmark = pytest.mark.root
# Stands for python3 on a host whose clock is 3 s ahead.
AHEAD = """#!/usr/bin/python3
import sys, time
ours = time.time_ns
time.time_ns = lambda: ours() + 3_000_000_000
code = sys.argv[sys.argv.index("-c") + 1]
sys.argv = ["-c", *sys.argv[sys.argv.index("-c") + 2:]]
exec(code)
"""
# Stands for python3 on a host that takes a minute for a connection to another.
SLOW_TO_CONNECT = """#!/usr/bin/python3
import socket, sys, time
socket.create_connection = lambda *_: time.sleep(60)
code = sys.argv[sys.argv.index("-c") + 1]
sys.argv = ["-c", *sys.argv[sys.argv.index("-c") + 2:]]
exec(code)
"""
DELAY_S = 0.025


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceCell]:
    """The hosts."""
    with checked_cell(tmp_path_factory.mktemp("cell")) as running:
        yield running


@pytest.fixture(autouse=True)
def _leaves_nothing(cell: NamespaceCell) -> Iterator[None]:
    """Fail a test after which something is left on a host or here."""
    yield
    assert_nothing_is_left(cell)


@rare
def test_a_link_that_is_cut_is_noticed_and_the_runner_ends_by_itself(
    cell: NamespaceCell, tmp_path: Path
) -> None:
    host = cell["planted"]
    host.plant("postgres", "#!/bin/sh\nexec sleep 4\n")  # so that the cut comes while it is asked
    directory = host.directory / "bin"
    server = f'role = "server"\ncpus = "0"\npostgresql = "{directory}"'
    file = cell.file(tmp_path, {"planted": server, "client1": LOAD})
    process = cell.pgdyno("cell", "check", "--cell", str(file), "--limit", "15s", "--json")
    wait_until(lambda: bool(runners(host)))
    host.link("down")
    try:
        said, errors = process.communicate(timeout=60)
        found = json.loads(said)["check"]["findings"]
        obstacles = {one["hosts"][0]: one["said"] for one in found if one["is_obstacle"]}
        assert obstacles.keys() == {"planted"}, errors
        assert "the connection was lost" in obstacles["planted"]
        assert process.returncode == 1
        wait_until(lambda: not runners(host), 90)
    finally:
        host.link("up")
        (directory / "postgres").unlink()
        host.end_sessions()  # of an sshd that does not know yet: TCP tries again after a minute or two


def runners(host: NamespaceHost) -> list[int]:
    """Return the runners on a host."""
    found = []
    for pid in host.pids():
        path = Path(f"/proc/{pid}/cmdline")
        if (
            path.exists()
            and path.read_bytes().startswith(b"python3\0")
            and b"pgdyno-runner" in path.read_bytes()
        ):
            found.append(pid)
    return found


@rare
def test_a_slow_load_host_is_not_the_servers_fault(cell: NamespaceCell, tmp_path: Path) -> None:
    with planted(cell["planted"], SLOW_TO_CONNECT):
        checked = check(cell, cell.file(tmp_path, tables(cell, "planted", "client1")))
    found = checked.findings(obstacles=True)
    assert found.keys() == {"planted"}
    assert "it does not respond in time" in found["planted"]
    assert checked.host("client1")["network"]["to_server_bytes_per_s"] > 0


@rare
def test_a_clock_that_is_ahead_is_found_within_its_error(cell: NamespaceCell, tmp_path: Path) -> None:
    with planted(cell["planted"], AHEAD):
        checked = check(cell, cell.file(tmp_path, tables(cell, "client1", "planted")))
    clock = checked.host("planted")["answer"]["clock"]
    assert abs(clock["offset_s"] - 3) <= clock["error_s"]
    said = checked.findings(obstacles=True)["planted"]
    assert said.startswith("its clock is 3\N{NO-BREAK SPACE}s (±\N{NO-BREAK SPACE}")
    assert "ahead of db1's; the limit is 50\N{NO-BREAK SPACE}ms → on planted and db1: sudo systemctl" in said


@rare
def test_a_long_way_makes_the_clock_less_certain(cell: NamespaceCell, tmp_path: Path) -> None:
    slow = slow_way(tmp_path, "client1", DELAY_S)
    checked = check(cell, cell.file(tmp_path, tables(cell, "client1", "client2"), more=slow))
    assert checked.findings(obstacles=True) == {}
    clock = checked.host("client1")["answer"]["clock"]
    assert clock["round_trip_s"] >= 2 * DELAY_S
    assert clock["error_s"] == clock["round_trip_s"] / 2
    assert abs(clock["offset_s"]) <= clock["error_s"]


@rare
def test_hosts_with_addresses_of_ipv6_alone(cell: NamespaceCell, tmp_path: Path) -> None:
    there = tables(cell, client1=f'{LOAD}\nssh = "client1-6"')
    there["db1"] += '\nssh = "db1-6"'
    checked = check(cell, cell.file(tmp_path, there))
    assert checked.findings(obstacles=True) == {}
    assert checked.host("db1")["answer"]["facts"]["address"] == cell["db1"].address_6
    assert checked.host("client1")["network"]["to_server_bytes_per_s"] > 0


@rare
def test_a_load_host_that_is_the_server_is_warned_of(cell: NamespaceCell, tmp_path: Path) -> None:
    checked = check(cell, cell.file(tmp_path, tables(cell, near=f'{LOAD}\nssh = "db1"')))
    assert checked.status == 0
    assert checked.findings(obstacles=False)["near"] == (
        "it is the same machine as db1: they compete for CPUs and memory "
        "→ use another machine, or separate them with cpus = in hosts.toml"
    )


@rare
def test_a_host_behind_another_one(cell: NamespaceCell, tmp_path: Path) -> None:
    there = tables(cell, client1=f'{LOAD}\njump = "client2"')
    assert check(cell, cell.file(tmp_path, there)).findings(obstacles=True) == {}
    unknown = cell.file(tmp_path, there, known={"client2": ""})
    assert "its host key is not accepted" in obstacle(cell, unknown)


@rare
def test_a_server_that_cannot_be_reached_from_load_hosts(cell: NamespaceCell, tmp_path: Path) -> None:
    there = tables(cell, "client1")
    there["db1"] += '\naddress = "198.51.100.7"'
    found = obstacle(cell, cell.file(tmp_path, there))
    assert found.startswith(
        "client1: the network to the server was not measured: no connection to 198.51.100.7 port "
    )
