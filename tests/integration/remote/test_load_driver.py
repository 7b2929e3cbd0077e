"""Other commands than ``compare`` whose load comes from load hosts of a cell."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.fix_cell import NamespaceCell, NamespaceHost, run
from tests.fix_compare_cell import (
    BOTH,
    HERE,
    LONG_TURNS,
    LOST,
    assert_from_both,
    await_line,
    blocks_lost,
    commands,
    hosts_file,
    rare,
)
from tests.fix_servers import wait_until

from pgdyno.store.experiments import ExperimentStore

pytestmark = [pytest.mark.root, pytest.mark.server, pytest.mark.usefixtures("home", "pg18_bin")]


@rare
def test_bench_has_its_load_from_load_hosts(cell: NamespaceCell, tmp_path: Path, home: Path) -> None:
    file = str(hosts_file(cell, tmp_path, BOTH))
    asked = ("bench", "pgbench-select", "--scale", "1", "--embedded", "--blocks", "1", *LONG_TURNS, "--json")
    said, errors = cell.pgdyno(*asked, "--cell", file).communicate(timeout=120)
    assert said, errors
    assert_from_both(home, json.loads(said)["experiment"])


@rare
def test_a_study_has_its_load_from_load_hosts(cell: NamespaceCell, tmp_path: Path, home: Path) -> None:
    file = str(hosts_file(cell, tmp_path, BOTH))
    asked = (
        "run",
        "noise-floor",
        "--workload",
        "pgbench-select",
        "--scale",
        "1",
        "--embedded",
        "--blocks",
        "2",
    )
    said, errors = cell.pgdyno(*asked, *LONG_TURNS, "--json", "--cell", file).communicate(timeout=120)
    assert said, errors
    assert_from_both(home, json.loads(said)["experiment"])


ACCELERATOR = ("run", "accelerator-study", "--embedded", "--scale", "1", "--clients", "2", "--as-booted")
SHORTEST = ("--blocks", "1", "--block", "2s")


@rare
@pytest.mark.skipif(shutil.which("sysbench") is None, reason="needs sysbench: apt-get install sysbench")
def test_the_accelerators_study_is_issued_by_the_load_hosts_own_sysbench(
    cell: NamespaceCell, tmp_path: Path, home: Path
) -> None:
    file = str(hosts_file(cell, tmp_path, ("client1",)))
    process = cell.pgdyno(*ACCELERATOR, *SHORTEST, "--cell", file)
    issues = partial(_has_sysbench, cell["client1"])
    wait_until(lambda: issues() or process.poll() is not None, 120)
    assert process.poll() is None, process.communicate()  # as long as it issues load
    said, errors = process.communicate(timeout=180)
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert "sysbench-read-only sysbench-read-write" in lines, said + errors
    (before,) = (line for line in lines if line.startswith("before: default "))
    (after,) = (line for line in lines if line.startswith("after: plan "))
    assert all(float(rate.replace(",", "")) > 0 for line in (before, after) for rate in line.split()[2:])
    (gain,) = (line for line in lines if line.startswith("gain "))
    assert gain.count("%") == 2  # of each workload
    assert ", unmodified, with a thread for each client" in said
    with closing(ExperimentStore(home / "experiments" / "experiments.sqlite")) as store:
        experiment = store.load(store.ids()[0])  # the newest
        (taken, *_) = store.slices(experiment.id, "sysbench-read-write", 0, 0)
    assert dict(experiment.generators) == dict.fromkeys(experiment.workloads, "sysbench")
    assert all(arm.transactions > 0 for block in experiment.blocks for arm in block.arms)
    assert taken.start_ns < taken.end_ns <= (taken.drained_ns or 0)


def _has_sysbench(host: NamespaceHost) -> bool:
    """Whether the host's own sysbench runs there, on a server here."""
    return f"\0--pgsql-host={HERE}\0".encode() in commands(host)


@contextmanager
def without_sysbench(host: NamespaceHost) -> Iterator[None]:
    """Hide sysbench from a host for a while: what is there instead cannot be run."""
    program = shutil.which("sysbench")
    assert program is not None
    there = ("nsenter", "-t", str(host.pids()[0]), "--mount")
    run(*there, "mount", "--bind", "/dev/null", program)
    try:
        yield
    finally:
        run(*there, "umount", program)


@rare
@pytest.mark.skipif(shutil.which("sysbench") is None, reason="needs sysbench: apt-get install sysbench")
def test_a_load_host_without_sysbench_is_told_before_servers_start(
    cell: NamespaceCell, tmp_path: Path
) -> None:
    asked = ("--workload", "sysbench-read-only", "--scale", "1", "--embedded", "--generator", "sysbench")
    file = str(hosts_file(cell, tmp_path, ("client1",)))
    with without_sysbench(cell["client1"]):
        process = cell.pgdyno("compare", "default", "off:jit=off", *asked, "--cell", file)
        said, errors = process.communicate(timeout=120)
    assert not said
    assert "pgdyno: ERROR:  sysbench is not installed on client1" in errors
    assert "HINT:  install it there (apt install sysbench), or " in errors


STEPS = ("run", "insert-benchmark", "--embedded", "--blocks", "1", "--json")


@rare
def test_steps_have_their_load_from_the_first_load_host(
    cell: NamespaceCell, tmp_path: Path, home: Path
) -> None:
    size = ("--clients", "2", "--rows", "2000/500/100", "--step-seconds", "1", "--step", "l.i0,l.x,qr100")
    file = str(hosts_file(cell, tmp_path, BOTH))
    said, errors = cell.pgdyno(*STEPS, *size, "--cell", file).communicate(timeout=180)
    assert said, errors
    document = json.loads(said)
    assert document["load_hosts"] == [{"first_round": 0, "names": ["client1"]}]
    told = [note.partition(" over")[0] for note in document["notes"] if "load" in note]
    unused = 'not used: load host "client2"; a step uses only the first load host in the file'
    assert told == ['load from "client1"', unused]
    with closing(ExperimentStore(home / "experiments" / "experiments.sqlite")) as store:
        experiment = store.load(document["experiment"])
    assert experiment.is_complete
    named = [f"insert-benchmark-{step}" for step in ("l.i0", "l.x", "qr100")]
    assert sorted({block.workload for block in experiment.blocks}) == named
    for block in experiment.blocks:
        assert 0 < block.audit["client_saturation_share"] < 1.5
        for arm in block.arms:
            assert arm.transactions > 0
            assert arm.values["client_cpu_us_per_transaction"] > 0
            assert arm.values["server_cpu_us_per_transaction"] > 0


@contextmanager
def loading_rows(cell: NamespaceCell, directory: Path, rows: str) -> Iterator[subprocess.Popen[str]]:
    """Start the first step of the Insert Benchmark, and wait until its driver is on the load host."""
    size = ("--clients", "1", "--rows", rows, "--step", "l.i0")
    process = cell.pgdyno(*STEPS, *size, "--cell", str(hosts_file(cell, directory, ("client1",))))
    try:
        wait_until(lambda: b"pgdyno-driver\0serve" in commands(cell["client1"]), 120)
        yield process
    finally:
        process.kill()
        process.communicate()


@rare
def test_a_step_whose_load_host_is_lost_is_repeated_from_its_beginning(
    cell: NamespaceCell, tmp_path: Path
) -> None:
    with loading_rows(cell, tmp_path, "200000/50/5") as process:
        cell["client1"].end_sessions()
        await_line(process, LOST.format("client1"))
        said, errors = process.communicate(timeout=180)
    assert said, errors
    document = json.loads(said)
    assert [one["round"] for one in blocks_lost(document)] == [0]
    assert document["is_complete"]


@rare
def test_a_step_that_is_interrupted_leaves_nothing(cell: NamespaceCell, tmp_path: Path) -> None:
    with loading_rows(cell, tmp_path, "30000000/50/5") as process:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=90)
    assert process.returncode == 130
    assert "interrupted; no round has ended yet" in errors


@rare
def test_accelerate_has_its_load_from_load_hosts(cell: NamespaceCell, tmp_path: Path, home: Path) -> None:
    file = str(hosts_file(cell, tmp_path, BOTH))
    plan = ("--layers", "application", "--as-booted", "--budget", "150s")
    asked = ("accelerate", "--embedded", "--workload", "pgbench-select", "--scale", "1", *plan, "--json")
    said, errors = cell.pgdyno(*asked, "--cell", file).communicate(timeout=400)
    assert said, errors
    assert_from_both(home, json.loads(said)["experiment"])


# A search of one trial; the command asks for a budget of minutes.
SEARCH = """
import json, sys
from pathlib import Path
from pgdyno.postgres.process.registry import embedded
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.load_hosts import FromCell
from pgdyno.workload.workload_choice import find_workloads
from pgdyno.tune.tune import tune
from pgdyno.tune.tune_request import TuneRequest
from pgdyno.cli.output import Lines
from pgdyno.cli.tune import _Printer
from pgdyno.host.cpu_idling import AS_BOOTED_GIVEN
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.variant import Variant
from pgdyno.remote.inventory import read_cell
workloads, design = find_workloads(("pgbench-select",), (), 1), Design(block_s=2.0, warmup_s=0.2, slice_s=0.5)
load_from = FromCell(read_cell(Path(sys.argv[1])))
conditions = Conditions(embedded(), workloads, design, load_from=load_from, as_booted=AS_BOOTED_GIVEN)
tuning = tune(TuneRequest(conditions, Variant("default"), 1.0, most_trials=1), Lines(), _Printer()).tuning
print(json.dumps([tuning.notes, len(tuning.trials[0].rounds), tuning.experiment]))
"""


def search(cell: NamespaceCell, directory: Path, loads: Sequence[str]) -> subprocess.Popen[str]:
    file = str(hosts_file(cell, directory, loads))
    command = ["nsenter", f"--net=/run/netns/{cell.hub}", sys.executable, "-c", SEARCH, file]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@rare
def test_a_search_has_its_load_from_load_hosts(cell: NamespaceCell, tmp_path: Path, home: Path) -> None:
    said, errors = search(cell, tmp_path, BOTH).communicate(timeout=240)
    assert said, errors
    notes, rounds, proof = json.loads(said)
    told = [note.partition(" over")[0] for note in notes if note.startswith("load from ")]
    assert told == ['load from "client1"', 'load from "client2"']
    assert rounds >= 1
    if proof is not None:  # one trial need not find anything that is faster
        assert_from_both(home, proof)


@rare
def test_a_search_goes_on_when_a_lost_load_host_is_back(cell: NamespaceCell, tmp_path: Path) -> None:
    process = search(cell, tmp_path, ("client1",))
    try:
        wait_until(lambda: b"pgdyno-driver\0serve" in commands(cell["client1"]), 120)
        cell["client1"].end_sessions()
        await_line(process, "a round does not count: load host client1 was lost")
        said, errors = process.communicate(timeout=240)
    finally:
        process.kill()
        process.communicate()
    assert said, errors
    notes, rounds, _ = json.loads(said)
    assert [note for note in notes if note.startswith('load host "client1" was lost in the search: it was')]
    assert rounds >= 1
