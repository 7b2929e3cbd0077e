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
from typing import Any

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
    unused = 'not used: load host "client2"; a step has its load from one host, the first in the file'
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
from pgdyno.app.installations import embedded
from pgdyno.app.measuring.conditions import Conditions
from pgdyno.app.measuring.workload_choice import find_workloads
from pgdyno.app.tuning.tune import tune
from pgdyno.app.tuning.tune_request import TuneRequest
from pgdyno.cli.output import Lines
from pgdyno.cli.tune import _Spoken
from pgdyno.model.experiments.awake import AS_ASKED
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.variant import Variant
from pgdyno.store.hosts.cell_file import read_cell_file
workloads, design = find_workloads(("pgbench-select",), (), 1), Design(block_s=2.0, warmup_s=0.2, slice_s=0.5)
cell = read_cell_file(Path(sys.argv[1]))
conditions = Conditions(embedded(), workloads, design, cell=cell, as_booted=AS_ASKED)
tuning = tune(TuneRequest(conditions, Variant("default"), 1.0, most_trials=1), Lines(), _Spoken()).tuning
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


LONG = ("--block", "60s")


def commands(host: NamespaceHost) -> bytes:
    paths = [Path(f"/proc/{pid}/cmdline") for pid in host.pids()]
    return b"".join(path.read_bytes() for path in paths if path.exists())


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


def await_line(process: subprocess.Popen[str], words: str) -> None:
    """Read its progress until a line has these words."""
    assert process.stderr is not None
    lines = list[str]()
    while not lines or words not in lines[-1]:
        line = process.stderr.readline()
        assert line, "".join(lines)
        lines.append(line)


SHORT = ("--block", "3s", "--json")
LOST = "round 1 does not count: load host {} was lost"


def lost_in_the_first_round(name: str) -> list[dict[str, object]]:
    """Return the blocks that do not count, as the JSON document lists them."""
    where = {"workload": "pgbench-select", "round": 0, "reason": f'load host "{name}" was lost'}
    return [{**where, "block": 0}]


def blocks_lost(document: dict[str, Any]) -> list[dict[str, object]]:
    return [one for one in document["void_blocks"] if "lost" in one["reason"]]


@rare
def test_a_load_host_whose_link_was_cut_goes_on_when_it_is_back(cell: NamespaceCell, tmp_path: Path) -> None:
    with loading(cell, tmp_path, *SHORT) as process:
        cell["client1"].link("down")
        try:
            await_line(process, f"{LOST.format('client1')} (Timeout, server {cell['client1'].address} not")
            await_line(process, "waiting for client1: client1: ")
            await_line(process, " s left")
        finally:
            cell["client1"].link("up")
        said, errors = process.communicate(timeout=180)
    assert said, errors
    document = json.loads(said)
    assert blocks_lost(document) == lost_in_the_first_round("client1")
    (note,) = [note for note in document["notes"] if "was lost" in note]
    assert re.fullmatch('load host "client1" was lost in round 1: it was back after [0-9]+.s', note)
    assert document["load_hosts"] == [{"first_round": 0, "names": ["client1"]}]
    assert document["blocks"] >= 3
    assert document["is_complete"]


@rare
def test_a_load_host_on_which_all_was_killed_goes_on_and_keeps_nothing(
    cell: NamespaceCell, tmp_path: Path
) -> None:
    with loading(cell, tmp_path, *LONG_TURNS, "--json", loads=BOTH) as process:
        cell["client1"].end_sessions()
        await_line(process, LOST.format("client1"))
        said, errors = process.communicate(timeout=180)
    assert said, errors
    document = json.loads(said)
    assert blocks_lost(document) == lost_in_the_first_round("client1")
    assert document["load_hosts"] == [{"first_round": 0, "names": ["client1", "client2"]}]


@rare
def test_with_allow_fewer_the_other_load_host_goes_on(
    cell: NamespaceCell, tmp_path: Path, home: Path
) -> None:
    with loading(cell, tmp_path, *LONG_TURNS, "--allow-fewer", "--json", loads=BOTH) as process:
        cell["client2"].link("down")
        try:
            await_line(process, LOST.format("client2"))
        finally:
            cell["client2"].link("up")
        said, errors = process.communicate(timeout=180)
    assert said, errors
    document = json.loads(said)
    assert blocks_lost(document) == lost_in_the_first_round("client2")
    names = [["client1", "client2"], ["client1"]]
    assert document["load_hosts"] == [{"first_round": n, "names": one} for n, one in enumerate(names)]
    changed = (
        'from round 2 on, the load came from host "client1", before from host "client1" and host "client2"'
    )
    assert [note for note in document["notes"] if note.startswith(changed)]
    with closing(ExperimentStore(home / "experiments" / "experiments.sqlite")) as store:
        experiment = store.load(document["experiment"])
        (first, *_) = store.slices(experiment.id, "pgbench-select", 1, 0)
    assert first.apart_ns is None  # nobody else had that turn
    counted = [block for block in experiment.blocks if block.round > 0]
    assert all(arm.transactions > 100 for block in counted for arm in block.arms)


@rare
def test_what_was_interrupted_while_a_host_was_lost_is_continued(cell: NamespaceCell, tmp_path: Path) -> None:
    with loading(cell, tmp_path, *SHORT) as process:
        cell["client1"].end_sessions()
        cell["client1"].link("down")
        try:
            await_line(process, "waiting for client1")
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=90)
        finally:
            cell["client1"].link("up")
    assert process.returncode == 130
    assert "interrupted; the block measured so far is kept" in errors
    (found,) = set(re.findall(r"continue with --resume (\S+)", errors))
    for left in Path(f"/proc/{cell['client1'].pids()[0]}/root/run/tmp").glob("pgdyno-load-*"):
        shutil.rmtree(left)  # another pgdyno does not know it
    said, errors = compare(cell, tmp_path, *SHORT, "--resume", found).communicate(timeout=180)
    assert said, errors
    document = json.loads(said)
    assert document["experiment"] == found
    assert blocks_lost(document) == lost_in_the_first_round("client1")
    assert document["is_complete"]


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
