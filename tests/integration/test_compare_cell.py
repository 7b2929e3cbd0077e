"""``pgdyno compare --cell``: load from another host, which is a namespace of this machine with an sshd."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.fix_cell import NETWORK, NamespaceCell, NamespaceHost, planted, run, running_cell
from tests.fix_servers import wait_until

from pgdyno.store.experiments import ExperimentStore

pytestmark = [pytest.mark.root, pytest.mark.server, pytest.mark.usefixtures("home", "pg18_bin")]
rare = pytest.mark.skipif("PGDYNO_CELLS" not in os.environ, reason="one is enough: make test-cells")

HERE = f"{NETWORK}.1"  # of the namespace where pgdyno and its servers run
SMALL = ("--workload", "pgbench-select", "--scale", "1", "--embedded", "--blocks", "2", "--seed", "7")

# Stands for python3 on a host whose answers are others'.
OTHERWISE = """#!/usr/bin/python3
import platform, subprocess, sys
{}
code = sys.argv[sys.argv.index("-c") + 1]
sys.argv = ["-c", *sys.argv[sys.argv.index("-c") + 2:]]
exec(code)
"""

LOGIN = f"""
import psycopg, sys
try:
    psycopg.connect(host="{HERE}", port=sys.argv[1], user="pgdyno", dbname=sys.argv[2], connect_timeout=10)
except psycopg.OperationalError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceCell]:
    """One load host."""
    with running_cell(tmp_path_factory.mktemp("cell"), {"client1": "512m"}) as running:
        yield running


@pytest.fixture(autouse=True)
def _leaves_nothing(cell: NamespaceCell) -> Iterator[None]:
    """Fail a test after which something is left on the load host or here."""
    yield
    host = cell["client1"]
    wait_until(lambda: len(host.pids()) == 1 and cell.own_pids() == ())  # the sshd that listens
    assert host.temporary_files() == []


def hosts_file(cell: NamespaceCell, directory: Path) -> Path:
    file = cell.file(directory, {"client1": 'role = "load"'})
    file.write_text(f'{file.read_text()}[hosts.db1]\nrole = "server"\naddress = "{HERE}"\n')
    return file


def compare(cell: NamespaceCell, directory: Path, *options: str) -> subprocess.Popen[str]:
    file = str(hosts_file(cell, directory))
    return cell.pgdyno("compare", "default", "off:jit=off", *SMALL, *options, "--cell", file)


def refusal(cell: NamespaceCell, directory: Path) -> str:
    """Return the error that a comparison ends with."""
    said, errors = compare(cell, directory).communicate(timeout=120)
    assert said == ""
    return errors[errors.index("pgdyno: ERROR:") :]


def test_a_load_host_issues_the_load_of_a_comparison(cell: NamespaceCell, tmp_path: Path, home: Path) -> None:
    said, errors = compare(cell, tmp_path, "--block", "500ms", "--json").communicate(timeout=120)
    assert said, errors
    document = json.loads(said)
    told = [note for note in document["notes"] if note.startswith('load from "client1" over the network')]
    assert len(told) == 1
    assert re.search("round trip [0-9.]+\N{NO-BREAK SPACE}[µm]s; threads that issue it: [0-9]+, ", told[0])
    with closing(ExperimentStore(home / "experiments" / "experiments.sqlite")) as store:
        experiment = store.load(document["experiment"])
    assert experiment.is_complete
    assert experiment.options == {"cell": "hosts.toml"}
    assert len(experiment.blocks) == 2
    for block in experiment.blocks:
        assert block.audit["client_saturation_share"] > 0
        for arm in block.arms:
            assert arm.transactions > 100
            assert arm.values["client_cpu_us_per_transaction"] > 0
            assert arm.values["server_cpu_us_per_transaction"] > 0


@contextmanager
def loading(cell: NamespaceCell, directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a comparison that takes minutes, and wait until its load runs on the load host."""
    process = compare(cell, directory, "--block", "60s")
    try:
        wait_until(lambda: b"pgdyno-driver" in commands(cell["client1"]), 120)
        yield process
    finally:
        process.kill()
        process.communicate()


def commands(host: NamespaceHost) -> bytes:
    paths = [Path(f"/proc/{pid}/cmdline") for pid in host.pids()]
    return b"".join(path.read_bytes() for path in paths if path.exists())


@rare
def test_a_link_that_is_cut_ends_the_comparison_and_all_of_it(cell: NamespaceCell, tmp_path: Path) -> None:
    with loading(cell, tmp_path) as process:
        cell["client1"].link("down")
        try:
            _, errors = process.communicate(timeout=90)
            assert cell.own_pids() == ()
        finally:
            cell["client1"].link("up")
    assert process.returncode == 1
    assert errors.endswith(
        "pgdyno: ERROR:  pgdyno-driver on client1 failed: it ended before it was stopped  (PGD-402)\n"
        f"DETAIL:  Timeout, server {cell['client1'].address} not responding.\n"
        "HINT:  pgdyno cell check looks at client1 and at the network between\n"
    )


@rare
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_comparison_that_is_ended_leaves_nothing(
    cell: NamespaceCell, tmp_path: Path, number: signal.Signals
) -> None:
    with loading(cell, tmp_path) as process:
        process.send_signal(number)
        process.communicate(timeout=90)
    assert process.returncode in {130, -signal.SIGKILL}


@rare
def test_servers_let_nobody_in_without_the_password(cell: NamespaceCell, tmp_path: Path) -> None:
    with loading(cell, tmp_path):
        sockets = run(
            "ip", "netns", "exec", cell.hub, "ss", "--listening", "--tcp", "--numeric", "--no-header"
        )
        addresses, ports = zip(
            *(line.split()[3].rsplit(":", 1) for line in sockets.splitlines()), strict=True
        )
        assert addresses == (HERE, HERE)
        said = [login(cell["client1"].namespace, port, "bench") for port in ports]
        assert all("no password supplied" in one for one in said), said
        assert "no pg_hba.conf entry" in login(cell["client1"].namespace, ports[0], "postgres")
        assert "no pg_hba.conf entry" in login(cell.hub, ports[0], "bench")


def login(namespace: str, port: str, database: str) -> str:
    """Return why nobody gets in from a namespace."""
    return run("ip", "netns", "exec", namespace, sys.executable, "-c", LOGIN, port, database)


@rare
def test_a_load_host_of_another_architecture_is_refused(cell: NamespaceCell, tmp_path: Path) -> None:
    with planted(cell["client1"], OTHERWISE.format("platform.machine = lambda: 'riscv64'")):
        said = refusal(cell, tmp_path)
    machine = os.uname().machine
    assert said == (
        f"pgdyno: ERROR:  client1 is riscv64, and this machine {machine}: pgdyno-driver does not run there  "
        f"(PGD-650)\nHINT:  use a load host that is {machine}\n"
    )


@rare
def test_a_driver_that_does_not_run_on_the_load_host_is_told(cell: NamespaceCell, tmp_path: Path) -> None:
    older = "subprocess.run = lambda *_, **__: subprocess.CompletedProcess([], 1, b'no GLIBC_2.34')"
    with planted(cell["client1"], OTHERWISE.format(older)):
        said = refusal(cell, tmp_path)
    assert said == (
        "pgdyno: ERROR:  pgdyno-driver does not run on client1  (PGD-650)\nDETAIL:  no GLIBC_2.34\n"
        "HINT:  it takes a C library (glibc) that is as new as this machine's: use a load host with such a "
        "system\n"
    )


@rare
def test_a_load_host_that_is_not_reached_is_named(cell: NamespaceCell, tmp_path: Path) -> None:
    cell["client1"].link("down")
    try:
        said = refusal(cell, tmp_path)
    finally:
        cell["client1"].link("up")
    assert said.startswith("pgdyno: ERROR:  client1: ")
    assert "HINT:  check the network, its address, and firewalls: ssh -F" in said
