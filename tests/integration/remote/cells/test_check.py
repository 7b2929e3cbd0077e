"""``pgdyno cell check`` on real hosts: namespaces of this machine with an sshd each."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fix_cell import NamespaceCell, NamespaceHost, planted
from tests.fix_cell_check import (
    assert_nothing_is_left,
    check,
    checked_cell,
    obstacle,
    rare,
    tables,
)
from tests.fix_compare_cell import hosts_file
from tests.fix_servers import wait_until

pytestmark = pytest.mark.root
NOT_OURS = "the host sent an invalid answer"


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


def test_a_healthy_cell_can_be_used(cell: NamespaceCell, tmp_path: Path) -> None:
    file = cell.file(tmp_path, tables(cell, "client1", "client2"))
    checked = check(cell, file, "60s")
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


@rare
def test_the_servers_host_is_asked_without_ssh_by_a_command_that_is_given_there(
    cell: NamespaceCell, tmp_path: Path
) -> None:
    checked = check(cell, hosts_file(cell, tmp_path, ("client1",)))  # no ssh leads to this db1
    assert (checked.status, checked.findings(obstacles=True)) == (0, {})
    assert checked.host("db1")["answer"]["facts"]["address"] is None
    assert checked.host("client1")["network"]["to_server_bytes_per_s"] > 0


def test_a_host_with_an_unknown_key_is_not_spoken_to(cell: NamespaceCell, tmp_path: Path) -> None:
    file = cell.file(tmp_path, tables(cell, "client1"), known={"client1": ""})
    assert obstacle(cell, file, "60s") == (
        f"client1: its host key is unknown (No ED25519 host key is known for {cell['client1'].address} "
        "and you have requested strict checking.) → connect once by hand, and compare the fingerprint before "
        f"accepting it: ssh -F {tmp_path}/ssh_config client1 "
        "(on the host's own console: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub)"
    )


def test_a_host_with_a_changed_key_is_not_spoken_to(cell: NamespaceCell, tmp_path: Path) -> None:
    file = cell.file(tmp_path, tables(cell, "client1"), known={"client1": cell["client2"].public_key})
    assert obstacle(cell, file, "60s") == (
        f"client1: its host key has changed: it shows {fingerprint(cell['client1'])}. "
        "This may be a man-in-the-middle attack "
        "→ ask its owner whether the key was changed, and compare it on the host's own console: "
        "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub . Only if it is the same, "
        "connect by hand; ssh shows how to remove the old one: "
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
    assert obstacle(cell, file).startswith("client1: its host key is unknown")
    assert (tmp_path / "known_hosts").read_text() == known


@rare
def test_a_full_disk_is_named(cell: NamespaceCell, tmp_path: Path) -> None:
    found = obstacle(cell, cell.file(tmp_path, tables(cell, "client1", "full")))
    assert found == (
        "full: could not write a program to /run/tmp: no space left on device (1\N{NO-BREAK SPACE}MB free) "
        "→ on full: df -h /run/tmp, and free space there"
    )


@rare
@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("exec yes", "unexpected output instead of pgdyno's runner's"),
        ("exec tr '\\0' x </dev/zero", "its answer has a line of more than 256\N{NO-BREAK SPACE}kB"),
        ("yes error >&2", "it does not respond in time: e"),
        ("exec sleep 600", "it does not respond in time"),
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
@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('ssh = "stranger@client1"', "it accepts none of your keys (ssh: Permission denied (publickey)) → "),
        ('ssh = "ssh://root@client1:9"', "nothing listens on its ssh port (connect to host "),
        ('ssh = "nowhere.invalid"', "its name is unknown (Could not resolve hostname nowhere.invalid"),
        ('cpus = "0-9999"', "hosts.toml names CPUs that are not available there: "),
    ],
)  # fmt: skip
def test_a_host_that_is_described_wrongly(cell: NamespaceCell, tmp_path: Path, table: str, said: str) -> None:
    file = cell.file(tmp_path, tables(cell, client1=f'role = "load"\n{table}'))
    assert obstacle(cell, file).startswith(f"client1: {said}")


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
