"""``pgdyno cell check`` on real hosts: namespaces of this machine with an sshd each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.fix_cell import NamespaceCell, NamespaceHost, planted, running_cell, slow_way
from tests.fix_servers import wait_until

pytestmark = pytest.mark.root
rare = pytest.mark.skipif("PGDYNO_CELLS" not in os.environ, reason="one of a kind is enough: make test-cells")

SIZES = {"db1": "64m", "client1": "64m", "client2": "64m", "full": "1m", "planted": "64m"}
NOT_OURS = "its answer is not one of pgdyno's runner"
POSTGRES = "#!/bin/sh\necho 'postgres (PostgreSQL) 17.2'\n"
LOAD = (
    'role = "load"\ncpus = "0"'  # one CPU: the hosts share them, and would wake each other's at the same time
)

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
    """The hosts; the server's has a program that says it is PostgreSQL."""
    with running_cell(tmp_path_factory.mktemp("cell"), SIZES) as running:
        running["db1"].plant("postgres", POSTGRES)
        yield running


@pytest.fixture(autouse=True)
def _leaves_nothing(cell: NamespaceCell) -> Iterator[None]:
    """Fail a test after which something is left on a host or here."""
    yield
    wait_until(lambda: all(len(host.pids()) == 1 for host in cell.hosts.values()))  # the sshd that listens
    assert all(host.temporary_files() == [] for host in cell.hosts.values())
    assert cell.own_pids() == ()


@dataclass(frozen=True)
class Checked:
    """The end of a check."""

    status: int
    document: dict[str, Any]

    def host(self, name: str) -> dict[str, Any]:
        """Return the answer of a host."""
        return next(one for one in self.document["hosts"] if one["host"]["name"] == name)

    def findings(self, *, obstacles: bool) -> dict[str, str]:
        """Return findings and next steps by hosts."""
        return {
            ", ".join(one["hosts"]): f"{one['said']} → {one['next_step']}"
            for one in self.document["findings"]
            if one["is_obstacle"] is obstacles
        }


def tables(cell: NamespaceCell, *loads: str, **other: str) -> dict[str, str]:
    """Return the tables of hosts.toml for the server and load hosts; ``other`` has whole ones."""
    server = f'role = "server"\ncpus = "0"\npostgresql = "{cell["db1"].directory}/bin"'
    return {"db1": server, **dict.fromkeys(loads, LOAD), **other}


def check(cell: NamespaceCell, file: Path, limit: str = "20s") -> Checked:
    """Run the command."""
    process = cell.pgdyno("cell", "check", "--cell", str(file), "--limit", limit, "--json")
    said, errors = process.communicate(timeout=120)
    assert said, errors
    return Checked(process.returncode, json.loads(said)["check"])


def obstacle(cell: NamespaceCell, file: Path, limit: str = "20s") -> str:
    """Return what alone keeps a cell from being used, with its next step."""
    checked = check(cell, file, limit)
    found = checked.findings(obstacles=True)
    assert (checked.status, len(found)) == (1, 1), found
    ((host, said),) = found.items()
    return f"{host}: {said}"


def test_a_healthy_cell_can_be_used(cell: NamespaceCell, tmp_path: Path) -> None:
    file = cell.file(tmp_path, tables(cell, "client1", "client2"))
    checked = check(cell, file)
    assert (checked.status, checked.findings(obstacles=True)) == (0, {})
    assert checked.host("db1")["answer"]["facts"]["postgresql"][0]["version"] == "postgres (PostgreSQL) 17.2"
    for name in ("client1", "client2"):
        found = checked.host(name)
        assert found["answer"]["facts"]["host_name"] == name
        assert (
            abs(found["answer"]["clock"]["offset_s"]) <= found["answer"]["clock"]["error_s"]
        )  # the same clock
        assert found["network"]["to_server_bytes_per_s"] > 0
        assert found["network"]["from_server_bytes_per_s"] > 0


def test_a_host_with_an_unknown_key_is_not_spoken_to(cell: NamespaceCell, tmp_path: Path) -> None:
    file = cell.file(tmp_path, tables(cell, "client1"), known={"client1": ""})
    assert obstacle(cell, file) == (
        f"client1: its host key is not known (No ED25519 host key is known for {cell['client1'].address} "
        "and you have requested strict checking.) → connect once by hand, and compare the fingerprint before "
        f"saying yes: ssh -F {tmp_path}/ssh_config client1 "
        "(on the host's own console: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub)"
    )


def test_a_host_with_a_changed_key_is_not_spoken_to(cell: NamespaceCell, tmp_path: Path) -> None:
    file = cell.file(tmp_path, tables(cell, "client1"), known={"client1": cell["client2"].public_key})
    assert obstacle(cell, file) == (
        f"client1: its host key has changed: it shows {fingerprint(cell['client1'])}. "
        "Somebody may be between you and the host "
        "→ ask its owner whether the key was changed, and compare it on the host's own console: "
        "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub . Only if it is the same, "
        "connect by hand; ssh says how to remove the old one: "
        f"ssh -F {tmp_path}/ssh_config client1"
    )


def fingerprint(host: NamespaceHost) -> str:
    """Return a host key's fingerprint as ssh-keygen prints it."""
    command = ["ssh-keygen", "-lf", str(host.directory / "host_key.pub")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[1]


@rare
def test_a_configuration_that_accepts_all_keys_is_overruled(cell: NamespaceCell, tmp_path: Path) -> None:
    careless = "Host *\n  StrictHostKeyChecking no\n"
    file = cell.file(tmp_path, tables(cell, "client1"), known={"client1": ""}, more=careless)
    known = (tmp_path / "known_hosts").read_text()
    assert obstacle(cell, file).startswith("client1: its host key is not known")
    assert (tmp_path / "known_hosts").read_text() == known


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
    assert "it does not answer in time" in found["planted"]
    assert checked.host("client1")["network"]["to_server_bytes_per_s"] > 0


@rare
def test_a_clock_that_is_ahead_is_found_within_its_error(cell: NamespaceCell, tmp_path: Path) -> None:
    with planted(cell["planted"], AHEAD):
        checked = check(cell, cell.file(tmp_path, tables(cell, "client1", "planted")))
    clock = checked.host("planted")["answer"]["clock"]
    assert abs(clock["offset_s"] - 3) <= clock["error_s"]
    said = checked.findings(obstacles=True)["planted"]
    assert said.startswith("its clock is 3\N{NO-BREAK SPACE}s (±\N{NO-BREAK SPACE}")
    assert (
        "ahead of db1's; they may differ by 50\N{NO-BREAK SPACE}ms → on planted and db1: sudo systemctl"
        in said
    )


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
def test_a_full_disk_is_named(cell: NamespaceCell, tmp_path: Path) -> None:
    found = obstacle(cell, cell.file(tmp_path, tables(cell, "client1", "full")))
    assert found == (
        "full: a program cannot be put into /run/tmp: no space left on device (1\N{NO-BREAK SPACE}MB free) "
        "→ on full: df -h /run/tmp, and make room there"
    )


@rare
@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("exec yes", "it says other things than pgdyno's runner would"),
        ("exec tr '\\0' x </dev/zero", "it answers with a line of more than 256\N{NO-BREAK SPACE}kB"),
        ("yes error >&2", "it does not answer in time: e"),
        ("exec sleep 600", "it does not answer in time"),
        ('echo "$5"; echo "{"', f"{NOT_OURS}: invalid json"),
        ('echo "$5"; echo \'{"ns": "now"}\'', f"{NOT_OURS}: ns: input should be a valid"),
        ('echo "$5"; echo \'{"ns": -5}\'', f"{NOT_OURS}: ns: input should be greater"),
        ("exit 127", "it has no python3"),
        ("echo python3 is too old >&2; exit 1", "its python3 is older than 3.7"),
    ],
)  # fmt: skip
def test_a_hostile_host_is_an_obstacle_and_no_more(
    cell: NamespaceCell, tmp_path: Path, program: str, said: str
) -> None:
    with planted(cell["planted"], f"#!/bin/sh\n{program}\n"):
        found = obstacle(cell, cell.file(tmp_path, tables(cell, "client1", "planted")), "5s")
    assert found.startswith(f"planted: {said}")


@rare
def test_a_login_may_say_something_first(cell: NamespaceCell, tmp_path: Path) -> None:
    with planted(cell["planted"], '#!/bin/sh\necho "Welcome!"; exec /usr/bin/python3 "$@"\n'):
        checked = check(cell, cell.file(tmp_path, tables(cell, "planted")))
    assert checked.findings(obstacles=True) == {}


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
        "it is the same machine as db1: they take CPUs and memory from each other "
        "→ use another machine, or keep them apart with cpus = in hosts.toml"
    )


@rare
def test_a_host_behind_another_one(cell: NamespaceCell, tmp_path: Path) -> None:
    there = tables(cell, client1=f'{LOAD}\njump = "client2"')
    assert check(cell, cell.file(tmp_path, there)).findings(obstacles=True) == {}
    unknown = cell.file(tmp_path, there, known={"client2": ""})
    assert "its host key is not accepted" in obstacle(cell, unknown)


@rare
@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('ssh = "stranger@client1"', "it accepts none of your keys (ssh: Permission denied (publickey)) → "),
        ('ssh = "ssh://root@client1:9"', "nothing listens at ssh's port (connect to host "),
        ('ssh = "nowhere.invalid"', "its name is unknown (Could not resolve hostname nowhere.invalid"),
        ('cpus = "0-9999"', "hosts.toml gives it CPUs that may not be used there: "),
    ],
)  # fmt: skip
def test_a_host_that_is_described_wrongly(cell: NamespaceCell, tmp_path: Path, table: str, said: str) -> None:
    file = cell.file(tmp_path, tables(cell, client1=f'role = "load"\n{table}'))
    assert obstacle(cell, file).startswith(f"client1: {said}")


@rare
def test_a_server_that_cannot_be_reached_from_load_hosts(cell: NamespaceCell, tmp_path: Path) -> None:
    there = tables(cell, "client1")
    there["db1"] += '\naddress = "198.51.100.7"'
    found = obstacle(cell, cell.file(tmp_path, there))
    assert found.startswith(
        "client1: the network to the server was not measured: no connection to 198.51.100.7 port "
    )


@rare
def test_an_interrupted_check_leaves_nothing(cell: NamespaceCell, tmp_path: Path) -> None:
    host = cell["planted"]
    with planted(host, "#!/bin/sh\nexec sleep 600\n"):
        file = cell.file(tmp_path, tables(cell, "client1", "planted"))
        process = cell.pgdyno("cell", "check", "--cell", str(file))
        wait_until(lambda: len(host.pids()) > 2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert errors.endswith("pgdyno: ERROR:  interrupted  (PGD-800)\n")


@rare
def test_the_table_has_a_column_for_each_host(cell: NamespaceCell, tmp_path: Path) -> None:
    process = cell.pgdyno(
        "cell", "check", "--cell", str(cell.file(tmp_path, tables(cell, "client1", "full")))
    )
    said, errors = process.communicate(timeout=120)
    assert said.splitlines()[0].split() == ["db1", "(server)", "client1", "(load)", "full", "(load)"]
    assert said.endswith("The cell cannot be used: 1 obstacle.\n")
    assert "network between client1 and db1" in errors
