"""Comparisons whose load comes from hosts that are namespaces of this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.fix_cell import NETWORK, NamespaceCell, NamespaceHost
from tests.fix_namespaces import running_cell
from tests.fix_servers import wait_until

from pgdyno.store.experiments import ExperimentStore


@pytest.fixture(scope="module")
def _two_load_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceCell]:
    """Start them once for all tests of a file."""
    with running_cell(tmp_path_factory.mktemp("cell"), {"client1": "512m", "client2": "512m"}) as running:
        yield running


@pytest.fixture
def cell(_two_load_hosts: NamespaceCell) -> Iterator[NamespaceCell]:
    """Two load hosts; most tests use the first alone. A test that leaves something there or here fails."""
    yield _two_load_hosts
    hosts, own_pids = _two_load_hosts.hosts.values(), _two_load_hosts.own_pids
    wait_until(lambda: all(len(host.pids()) == 1 for host in hosts) and own_pids() == ())  # each sshd
    assert [host.temporary_files() for host in hosts] == [[], []]


rare = pytest.mark.skipif("PGDYNO_CELLS" not in os.environ, reason="one is enough: make test-cells")

HERE = f"{NETWORK}.1"  # of the namespace where pgdyno and its servers run
SMALL = ("--workload", "pgbench-select", "--scale", "1", "--embedded", "--blocks", "2", "--seed", "7")


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


BOTH = ("client1", "client2")
LONG_TURNS = ("--slice", "500ms", "--block", "2s")  # words between loaded namespaces take milliseconds


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
    cell: NamespaceCell, directory: Path, *options: str, loads: Sequence[str] = ("client1",)
) -> Iterator[subprocess.Popen[str]]:
    """Start a comparison, and wait until its load runs on the load hosts."""
    process = compare(cell, directory, *options, loads=loads)
    try:
        wait_until(lambda: all(b"pgdyno-driver\0serve" in commands(cell[name]) for name in loads), 120)
        yield process
    finally:
        process.kill()
        process.communicate()


def commands(host: NamespaceHost) -> bytes:
    paths = [Path(f"/proc/{pid}/cmdline") for pid in host.pids()]
    return b"".join(path.read_bytes() for path in paths if path.exists())


def await_line(process: subprocess.Popen[str], words: str) -> None:
    """Read its progress until a line has these words."""
    assert process.stderr is not None
    lines = list[str]()
    while not lines or words not in lines[-1]:
        line = process.stderr.readline()
        assert line, "".join(lines)
        lines.append(line)


LOST = "round 1 does not count: load host {} was lost"


def blocks_lost(document: dict[str, Any]) -> list[dict[str, object]]:
    return [one for one in document["void_blocks"] if "lost" in one["reason"]]
