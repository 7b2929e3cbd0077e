"""``pgdyno compare --cell``: load from other hosts, which are namespaces of this machine with an sshd."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.fix_cell import NETWORK, NamespaceCell, NamespaceHost, planted, run, running_cell, slow_way
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
    """Two load hosts; most tests use the first alone."""
    sizes = {"client1": "512m", "client2": "512m"}
    with running_cell(tmp_path_factory.mktemp("cell"), sizes) as running:
        yield running


@pytest.fixture(autouse=True)
def _leaves_nothing(cell: NamespaceCell) -> Iterator[None]:
    """Fail a test after which something is left on a load host or here."""
    yield
    hosts = cell.hosts.values()
    wait_until(lambda: all(len(host.pids()) == 1 for host in hosts) and cell.own_pids() == ())  # each sshd
    assert [host.temporary_files() for host in hosts] == [[], []]


def hosts_file(cell: NamespaceCell, directory: Path, loads: Sequence[str], more: str = "") -> Path:
    """Write hosts.toml; ``more`` comes first in ssh's configuration."""
    file = cell.file(directory, dict.fromkeys(loads, 'role = "load"'), more=more)
    file.write_text(f'{file.read_text()}[hosts.db1]\nrole = "server"\naddress = "{HERE}"\n')
    return file


def compare(
    cell: NamespaceCell, directory: Path, *options: str, loads: Sequence[str] = ("client1",), more: str = ""
) -> subprocess.Popen[str]:
    file = str(hosts_file(cell, directory, loads, more))
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
    assert len(experiment.blocks) >= 2  # one that was disturbed is measured again
    for block in experiment.blocks:
        assert block.audit["client_saturation_share"] > 0
        for arm in block.arms:
            assert arm.transactions > 100
            assert arm.values["client_cpu_us_per_transaction"] > 0
            assert arm.values["server_cpu_us_per_transaction"] > 0


BOTH = ("client1", "client2")
LONG_TURNS = ("--slice", "500ms", "--block", "2s")  # words between loaded namespaces take milliseconds


def test_two_load_hosts_share_the_load_of_a_comparison(
    cell: NamespaceCell, tmp_path: Path, home: Path
) -> None:
    process = compare(cell, tmp_path, *LONG_TURNS, "--clients", "3", "--json", loads=BOTH)
    said, errors = process.communicate(timeout=180)
    assert said, errors
    document = json.loads(said)
    assert_from_both(home, document["experiment"])
    with closing(ExperimentStore(home / "experiments" / "experiments.sqlite")) as store:
        experiment = store.load(document["experiment"])
        slices = store.slices(experiment.id, "pgbench-select", 0, 0)
    assert len(slices) == 4
    for one in slices:
        assert one.apart_ns is not None
        assert one.apart_ns > 0
    for block in experiment.blocks:
        assert block.audit["client_saturation_share"] > 0
        for arm in block.arms:
            assert arm.transactions > 100
            assert arm.values["client_cpu_us_per_transaction"] > 0


@rare
def test_bench_has_its_load_from_load_hosts(cell: NamespaceCell, tmp_path: Path, home: Path) -> None:
    file = str(hosts_file(cell, tmp_path, BOTH))
    asked = ("bench", "pgbench-select", "--scale", "1", "--embedded", "--blocks", "1", *LONG_TURNS, "--json")
    said, errors = cell.pgdyno(*asked, "--cell", file).communicate(timeout=120)
    assert said, errors
    assert_from_both(home, json.loads(said)["experiment"])


@rare
def test_accelerate_has_its_load_from_load_hosts(cell: NamespaceCell, tmp_path: Path, home: Path) -> None:
    file = str(hosts_file(cell, tmp_path, BOTH))
    plan = ("--layers", "application", "--as-booted", "--budget", "150s")
    asked = ("accelerate", "--embedded", "--workload", "pgbench-select", "--scale", "1", *plan, "--json")
    said, errors = cell.pgdyno(*asked, "--cell", file).communicate(timeout=400)
    assert said, errors
    assert_from_both(home, json.loads(said)["experiment"])


def assert_from_both(home: Path, experiment_id: str) -> None:
    """Assert that an experiment's load came from both hosts."""
    with closing(ExperimentStore(home / "experiments" / "experiments.sqlite")) as store:
        experiment = store.load(experiment_id)
    told = [note.partition(" over")[0] for note in experiment.notes if note.startswith("load from ")]
    assert told == ['load from "client1"', 'load from "client2"']
    assert experiment.options == {"cell": "hosts.toml"}
    assert experiment.blocks


@contextmanager
def loading(
    cell: NamespaceCell, directory: Path, loads: Sequence[str] = ("client1",)
) -> Iterator[subprocess.Popen[str]]:
    """Start a comparison that takes minutes, and wait until its load runs on the load hosts."""
    process = compare(cell, directory, "--block", "60s", loads=loads)
    try:
        wait_until(lambda: all(b"pgdyno-driver" in commands(cell[name]) for name in loads), 120)
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
def test_a_load_host_whose_words_take_long_is_refused_by_name(cell: NamespaceCell, tmp_path: Path) -> None:
    process = compare(cell, tmp_path, loads=BOTH, more=slow_way(tmp_path, "client2", 0.05))
    _, errors = process.communicate(timeout=120)
    assert (
        "pgdyno: ERROR:  client2 is too far away to take turns together with other load hosts  (PGD-1"
        in errors
    )
    assert "and 2\xa0s is the most" in errors


@rare
def test_turns_are_longer_where_words_take_their_time(
    cell: NamespaceCell, tmp_path: Path, home: Path
) -> None:
    more = slow_way(tmp_path, "client2", 0.004)
    process = compare(cell, tmp_path, "--block", "2s", "--json", loads=BOTH, more=more)
    said, errors = process.communicate(timeout=240)
    assert said, errors
    document = json.loads(said)
    assert [note for note in document["notes"] if note.startswith("turns of ")]
    with closing(ExperimentStore(home / "experiments" / "experiments.sqlite")) as store:
        assert store.load(document["experiment"]).design.slice_s >= 40 * 0.008


@rare
def test_turns_that_a_host_began_late_do_not_count(cell: NamespaceCell, tmp_path: Path, home: Path) -> None:
    more = slow_way(tmp_path, "client2", 0.0, every=3, later_s=0.2)
    process = compare(cell, tmp_path, *LONG_TURNS, "--json", loads=BOTH, more=more)
    said, errors = process.communicate(timeout=240)
    assert said, errors
    late = 0
    with closing(ExperimentStore(home / "experiments" / "experiments.sqlite")) as store:
        experiment = store.load(json.loads(said)["experiment"])
        for block in experiment.blocks:
            slices = store.slices(experiment.id, block.workload, block.round, block.index)
            for position, one in enumerate(slices):
                if one.apart_ns and one.apart_ns > 150_000_000:
                    late += 1
                    assert block.void or position in block.left_out
    assert late > 0


@rare
def test_the_one_of_two_load_hosts_that_dies_is_named(cell: NamespaceCell, tmp_path: Path) -> None:
    with loading(cell, tmp_path, BOTH) as process:
        cell["client1"].end_sessions()
        _, errors = process.communicate(timeout=90)
    assert process.returncode == 1
    assert "pgdyno: ERROR:  pgdyno-driver on client1 failed: it ended before it was stopped" in errors
    directory = Path(f"/proc/{cell['client1'].pids()[0]}/root/run/tmp")
    for left in directory.glob("pgdyno-*"):  # nobody was there any more to remove it
        shutil.rmtree(left)


@rare
def test_the_one_of_two_load_hosts_whose_link_is_cut_is_named(cell: NamespaceCell, tmp_path: Path) -> None:
    with loading(cell, tmp_path, BOTH) as process:
        cell["client2"].link("down")
        try:
            _, errors = process.communicate(timeout=90)
            assert cell.own_pids() == ()
        finally:
            cell["client2"].link("up")
    assert process.returncode == 1
    assert "pgdyno: ERROR:  pgdyno-driver on client2 failed: it ended before it was stopped" in errors


@rare
def test_two_load_hosts_on_one_machine_are_refused(cell: NamespaceCell, tmp_path: Path) -> None:
    file = hosts_file(cell, tmp_path, ("client1",))
    file.write_text(f'{file.read_text()}[hosts.again]\nrole = "load"\nssh = "client1"\n')
    process = cell.pgdyno("compare", "default", "off:jit=off", *SMALL, "--cell", str(file))
    _, errors = process.communicate(timeout=120)
    assert "pgdyno: ERROR:  again is the same machine as client1: they take CPUs from each other" in errors


@rare
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_comparison_that_is_ended_leaves_nothing(
    cell: NamespaceCell, tmp_path: Path, number: signal.Signals
) -> None:
    with loading(cell, tmp_path, BOTH) as process:
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
