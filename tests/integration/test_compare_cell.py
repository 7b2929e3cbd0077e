"""``pgdyno compare --cell``: load from other hosts, which are namespaces of this machine with an sshd."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.fix_cell import NamespaceCell, planted, run, slow_way
from tests.fix_compare_cell import (
    BOTH,
    HERE,
    LONG_TURNS,
    SMALL,
    assert_from_both,
    compare,
    hosts_file,
    loading,
    rare,
)

from pgdyno.store.experiments import ExperimentStore

pytestmark = [pytest.mark.root, pytest.mark.server, pytest.mark.usefixtures("home", "pg18_bin")]

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
port, database, user = sys.argv[1:]
try:
    psycopg.connect(host="{HERE}", port=port, user=user, dbname=database, connect_timeout=10)
except psycopg.OperationalError as error:
    print(error)
"""


def refusal(cell: NamespaceCell, directory: Path) -> str:
    """Return the error that a comparison ends with."""
    said, errors = compare(cell, directory).communicate(timeout=120)
    assert said == ""
    return errors[errors.index("pgdyno: ERROR:") :]


def test_a_load_host_issues_the_load_of_a_comparison(cell: NamespaceCell, tmp_path: Path, home: Path) -> None:
    said, errors = compare(cell, tmp_path, "--block", "500ms", "--json").communicate(timeout=280)
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


def test_two_load_hosts_share_the_load_of_a_comparison(
    cell: NamespaceCell, tmp_path: Path, home: Path
) -> None:
    once = ("--block", "500ms", "--blocks", "1")  # a block has four turns at least
    process = compare(cell, tmp_path, *LONG_TURNS, *once, "--clients", "3", "--json", loads=BOTH)
    said, errors = process.communicate(timeout=280)
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


LONG = ("--block", "60s")


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
def test_two_load_hosts_on_one_machine_are_refused(cell: NamespaceCell, tmp_path: Path) -> None:
    file = hosts_file(cell, tmp_path, ("client1",))
    file.write_text(f'{file.read_text()}[hosts.again]\nrole = "load"\nssh = "client1"\n')
    process = cell.pgdyno("compare", "default", "off:jit=off", *SMALL, "--cell", str(file))
    _, errors = process.communicate(timeout=120)
    assert "pgdyno: ERROR:  again is the same machine as client1: they compete for CPUs" in errors


@rare
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_comparison_that_is_ended_leaves_nothing(
    cell: NamespaceCell, tmp_path: Path, number: signal.Signals
) -> None:
    with loading(cell, tmp_path, *LONG, loads=BOTH) as process:
        process.send_signal(number)
        process.communicate(timeout=90)
    assert process.returncode in {130, -signal.SIGKILL}


@rare
def test_servers_let_nobody_in_without_the_password(cell: NamespaceCell, tmp_path: Path) -> None:
    with loading(cell, tmp_path, *LONG):
        sockets = run(
            "ip", "netns", "exec", cell.hub, "ss", "--listening", "--tcp", "--numeric", "--no-header"
        )
        addresses, ports = zip(
            *(line.split()[3].rsplit(":", 1) for line in sockets.splitlines()), strict=True
        )
        assert addresses == (HERE, HERE)
        said = [login(cell["client1"].namespace, port, "bench") for port in ports]
        assert all("no password supplied" in one for one in said), said
        assert "no pg_hba.conf entry" in login(cell["client1"].namespace, ports[0], "bench", "pgdyno")
        assert "no pg_hba.conf entry" in login(cell["client1"].namespace, ports[0], "postgres")
        assert "no pg_hba.conf entry" in login(cell.hub, ports[0], "bench")


def login(namespace: str, port: str, database: str, user: str = "pgdyno_load") -> str:
    """Return why nobody gets in from a namespace."""
    return run("ip", "netns", "exec", namespace, sys.executable, "-c", LOGIN, port, database, user)


@rare
def test_a_load_host_of_another_architecture_is_refused(cell: NamespaceCell, tmp_path: Path) -> None:
    with planted(cell["client1"], OTHERWISE.format("platform.machine = lambda: 'riscv64'")):
        said = refusal(cell, tmp_path)
    machine = os.uname().machine
    assert said == (
        "pgdyno: ERROR:  pgdyno-driver does not run on client1: its machine type is riscv64, not "
        f"{machine}  (PGD-650)\nHINT:  use a load host of type {machine}\n"
    )


@rare
def test_a_driver_that_does_not_run_on_the_load_host_is_told(cell: NamespaceCell, tmp_path: Path) -> None:
    older = "subprocess.run = lambda *_, **__: subprocess.CompletedProcess([], 1, b'no GLIBC_2.34')"
    with planted(cell["client1"], OTHERWISE.format(older)):
        said = refusal(cell, tmp_path)
    assert said == (
        "pgdyno: ERROR:  pgdyno-driver does not run on client1  (PGD-650)\nDETAIL:  no GLIBC_2.34\n"
        "HINT:  it needs a C library (glibc) at least as new as this machine's: use such a load host\n"
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
