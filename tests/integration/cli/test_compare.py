"""``pgdyno compare`` on real servers: PostgreSQL 18 of the embedded wheel, pgbench at scale 1."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.fix_home import pgdyno
from tests.fix_machine import alone

from pgdyno.base.errors import GeneratorMissingError, MeasurementError
from pgdyno.cli.main import cli
from pgdyno.cli.output import Lines
from pgdyno.host.cpu_idling import AS_BOOTED_GIVEN
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.measure import measure
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.registry import embedded
from pgdyno.store.experiments import ExperimentStore
from pgdyno.studies.compare import one_alone
from pgdyno.workload.workload_choice import find_workloads

SMALL = ("--workload", "pgbench-select", "--scale", "1", "--embedded", "--block", "300ms", "--clients", "1")

PGDYNO = (sys.executable, "-m", "pgdyno")

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home", "pg18_bin")]


SOME_SLICES = 4
# It kills itself in the first block, of whose 32 slices the twelfth has just been stored.
DYING = """
import os, signal
from pgdyno.cli.main import main
from pgdyno.store.experiments import ExperimentStore
stored, add_slice = [], ExperimentStore.add_slice
def add_and_die(store, *slice):
    add_slice(store, *slice)
    stored.append(slice)
    if len(stored) == 12:
        os.kill(os.getpid(), signal.SIGKILL)
ExperimentStore.add_slice = add_and_die
main()
"""


@pytest.fixture
def started(request: pytest.FixtureRequest, home: Path) -> Iterator[subprocess.Popen[str]]:
    """A comparison that would take long, caught while its slices run."""
    options = (*SMALL, "--generator", request.param, "--blocks", "200")
    before = newest(home)
    # A test run in the background may ignore SIGINT, and its children would inherit that.
    process = subprocess.Popen(
        ["env", "--default-signal=INT", *PGDYNO, "compare", "a", "b", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PGDYNO_HOME": str(home)},
    )
    wait_for(lambda: has_slices(process, home, before))
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def with_generators(usual: str, other: str) -> pytest.MarkDecorator:
    """Run a test with a comparison whose load one generator issues; with the other in `make test-long`."""
    others = pytest.param(other, marks=pytest.mark.long)
    return pytest.mark.parametrize("started", [usual, others], indirect=True)


def has_slices(process: subprocess.Popen[str], home: Path, before: str | None) -> bool:
    """Whether some slices of a new experiment have ended; an end of its process is a failure."""
    assert process.poll() is None, process.stderr and process.stderr.read()
    return newest(home) != before and slices(home) >= SOME_SLICES


def newest(home: Path) -> str | None:
    """Return the id of the experiment that was begun last."""
    return _one(home, "SELECT id FROM experiment ORDER BY created DESC, rowid DESC LIMIT 1")


def slices(home: Path) -> int:
    """Return how many slices of that experiment have ended."""
    return int(_one(home, f"SELECT count(*) FROM slice WHERE experiment = '{newest(home)}'") or 0)  # noqa: S608


def _one(home: Path, sql: str) -> str | None:
    store = home / "experiments" / "experiments.sqlite"
    if not store.exists():
        return None
    with closing(sqlite3.connect(store, timeout=60)) as connection:
        has_tables = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'slice'").fetchone()[
            0
        ]
        row = connection.execute(sql).fetchone() if has_tables else None
    return None if row is None else str(row[0])


def any_running(home: Path) -> bool:
    """Whether a server or a generator still works in this home."""
    programs = ("postgres", "pgbench", "pgdyno-driver")
    return any(children_running(program, home) for program in programs)


def children_running(program: str, home: Path) -> list[int]:
    """Return processes of a program that work in this home."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if program in command.split("\0")[0] and str(home) in command:
                found.append(int(entry.name))
    return found


def wait_for(condition: object, timeout_s: float = 120.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def test_a_comparison_gives_verdicts_with_intervals_for_every_metric() -> None:
    done = pgdyno("compare", "default", "wide:work_mem=8MB", *SMALL, "--blocks", "4", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema_version"] == 1
    assert document["is_complete"] is True
    assert document["settings"] == [
        {"variant": "default", "name": "work_mem", "requested": None, "effective": "4MB"},
        {"variant": "wide", "name": "work_mem", "requested": "8MB", "effective": "8MB"},
    ]
    metrics = {row["metric"]: row for row in document["comparisons"]}
    latencies = {"latency_ms_tail_mean", "latency_ms_p99"}
    assert set(metrics) == {"throughput_tps", "server_cpu_us_per_transaction", *latencies}
    for row in metrics.values():
        assert row["verdict"] in {"better", "worse", "equivalent", "inconclusive"}
        assert {"effect", "interval", "mde"} <= set(row)


def test_an_experiment_carries_the_facts_of_its_host_and_server(home: Path) -> None:
    done = pgdyno("bench", "pgbench-select", *SMALL[2:], "--blocks", "1", "--json")
    assert done.returncode == 0, done.stderr
    with closing(ExperimentStore(home / "experiments" / "experiments.sqlite")) as store:
        experiment = store.load(json.loads(done.stdout)["experiment"])
    assert str(experiment.server["version"]).startswith("18.")
    assert experiment.host["cpu"]
    assert experiment.installation == "embedded"
    assert experiment.scales == {"pgbench-select": 1}


def test_a_variant_can_name_another_build_of_postgresql(pg15_bin: Path) -> None:
    done = pgdyno(
        *("compare", "embedded@default", f"{pg15_bin.parent}@default", "--workload", "pgbench-select"),
        *("--scale", "1", "--block", "300ms", "--clients", "1", "--blocks", "1", "--json"),
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["comparisons"][0]["baseline"] == "embedded-default"
    assert document["comparisons"][0]["variant"] == f"{pg15_bin.parent.name}-default"
    assert any("embedded-default is PostgreSQL 18" in note for note in document["notes"])
    (confounded,) = (note for note in document["notes"] if note.startswith("CONFOUNDED: embedded and "))
    assert "is a distribution's package" in confounded


def test_a_variant_without_a_server_needs_one_to_be_named() -> None:
    done = pgdyno("compare", "embedded@default", "default", "--workload", "pgbench-select")
    assert done.returncode == 2
    assert "no PostgreSQL was specified" in done.stderr


def test_a_server_that_breaks_the_workloads_invariant_gives_no_figures() -> None:
    spoilt = {
        name: replace(workload, invariant="SELECT count(*) = 0 FROM pgbench_history")
        for name, workload in find_workloads(("pgbench-tpcb",), (), 1).items()
    }
    design = replace(Design(), rounds=1, blocks_per_round=1, block_s=0.5, warmup_s=0.2, clients=1)
    conditions = Conditions(embedded(), spoilt, design, as_booted=AS_BOOTED_GIVEN)
    with pytest.raises(MeasurementError) as caught:
        measure(one_alone(Variant("default"), spoilt, design), conditions, Lines())
    assert caught.value.message == "pgbench-tpcb left wrong data on the server of default"
    assert caught.value.detail == "this is no longer true: SELECT count(*) = 0 FROM pgbench_history"


@with_generators("driver", "pgbench")
def test_a_second_measurement_is_refused_and_ctrl_c_keeps_what_the_first_has(
    started: subprocess.Popen[str], home: Path
) -> None:
    done = pgdyno("compare", "a", "b", *SMALL, "--blocks", "4")
    assert done.returncode == 4
    assert "another pgdyno is measuring on this host" in done.stderr
    assert f"process {started.pid} holds" in done.stderr
    started.send_signal(signal.SIGINT)
    _, errors = started.communicate(timeout=150)
    assert started.returncode == 130
    assert "ERROR:  interrupted; " in errors
    assert "--resume" in errors
    wait_for(lambda: not any_running(home))  # a stopped server's last processes may outlive it by a moment


@with_generators("pgbench", "driver")  # pgbench: pgdyno itself stops it between its turns
def test_after_kill_9_nothing_is_left_running_or_frozen(started: subprocess.Popen[str], home: Path) -> None:
    started.kill()
    started.communicate()
    wait_for(lambda: not any_running(home))


def test_an_experiment_killed_in_a_round_goes_on_with_what_it_had(home: Path) -> None:
    command = ("compare", "a", "b", *SMALL, "--block", "1500ms", "--blocks", "2")
    before = newest(home)
    done = subprocess.run(
        [sys.executable, "-c", DYING, *command],
        stdout=subprocess.DEVNULL,
        check=False,
        timeout=280,
        env={**os.environ, "PGDYNO_HOME": str(home)},
    )
    assert done.returncode == -signal.SIGKILL
    assert newest(home) != before
    assert slices(home) == 12
    wait_for(lambda: not children_running("postgres", home))
    killed = newest(home)
    assert killed is not None
    assert json.loads(pgdyno("report", "--list", "--json").stdout)["experiments"][0]["id"] == killed
    resumed = pgdyno(*command, "--resume", killed, "--json")
    assert resumed.returncode == 0, resumed.stderr
    document = json.loads(resumed.stdout)
    assert (document["experiment"], document["is_complete"]) == (killed, True)
    bundle = home / "resumed.zip"
    assert pgdyno("bundle", "export", killed, "--output", str(bundle)).returncode == 0
    with zipfile.ZipFile(bundle) as archive:
        name = next(n for n in archive.namelist() if n.endswith("/experiment.json"))
        blocks = json.loads(archive.read(name))["blocks"]
    first = next(block for block in blocks if (block["round"], block["index"]) == (0, 0))
    assert "throughput_tps" in first["arms"][0]["values"]
    assert "server_cpu_us_per_transaction" not in first["arms"][0]["values"], "meters were never read"


TRIALS = (*SMALL, "--design", "alternating")


@pytest.fixture(scope="module")
def in_two_trials(home: Path, pg18_bin: Path) -> Mapping[str, Any]:
    """The output of a comparison in two rounds of whole trials."""
    done = pgdyno("compare", "a", "b", *TRIALS, "--blocks", "2", "--json")
    assert done.returncode == 0, done.stderr
    document: Mapping[str, Any] = json.loads(done.stdout)
    return document


def test_every_trial_has_counts_of_its_own_in_the_bundle(
    in_two_trials: Mapping[str, Any], home: Path
) -> None:
    """Trials of both variants; the bundle's check holds each one's histogram against its percentiles."""
    assert in_two_trials["design"]["kind"] == "alternating"
    experiment = in_two_trials["experiment"]
    bundle = home / "trials.zip"
    assert pgdyno("bundle", "export", experiment, "--output", str(bundle)).returncode == 0
    verified = pgdyno("bundle", "verify", str(bundle))
    assert verified.returncode == 0, verified.stdout
    with zipfile.ZipFile(bundle) as archive:
        name = next(n for n in archive.namelist() if n.endswith("/histograms.csv"))
        lines = archive.read(name).decode().splitlines()
    places = sorted(",".join(line.split(",")[:4]) for line in lines[1:])
    assert places[:2] == ["pgbench-select,1,1,a", "pgbench-select,1,1,b"]


def test_a_generator_that_cannot_issue_a_workload_is_refused_with_those_that_can() -> None:
    done = pgdyno("compare", "a", "b", *SMALL, "--generator", "sysbench")
    assert done.returncode == 2
    assert 'the generator "sysbench" cannot issue pgbench-select' in done.stderr
    assert "choose --generator driver or pgbench" in done.stderr


def test_under_four_blocks_nothing_is_concluded_and_no_other_experiment_is_resumed(
    in_two_trials: Mapping[str, Any],
) -> None:
    assert {row["verdict"] for row in in_two_trials["comparisons"]} == {"inconclusive"}
    stored = in_two_trials["experiment"]
    other = pgdyno("compare", "a", "other", *TRIALS, "--resume", stored)
    assert other.returncode == 2
    assert f"experiment {stored} compared different variants or workloads" in other.stderr
    larger = pgdyno("compare", "a", "b", *TRIALS, "--scale", "2", "--resume", stored)
    assert larger.returncode == 2
    assert f"experiment {stored} used different data or a different PostgreSQL" in larger.stderr
    assert "it ran embedded at scale 1, not embedded at scale 2" in larger.stderr


@with_generators("driver", "pgbench")
def test_a_server_killed_in_a_trial_is_a_failure_with_its_log(
    started: subprocess.Popen[str], home: Path
) -> None:
    for pid in children_running("postgres", home):
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself since it was listed
            os.kill(pid, signal.SIGKILL)
    _, errors = started.communicate(timeout=150)
    assert started.returncode == 1
    assert "PGD-303" in errors or "PGD-402" in errors
    assert "DETAIL:" in errors


@pytest.mark.parametrize(
    ("variant", "message", "detail"),
    [
        ("x:no_such=1", 'unrecognized configuration parameter "no_such"', None),
        ("x:shared_buffers=1kB", "0 8kB is outside the valid range", None),
        ("x:io_method=io_uring", 'invalid value for parameter "io_method": "io_uring"', "sync, worker"),
    ],
)
def test_settings_that_the_server_rejects_are_named_before_anything_is_loaded_or_starts(
    variant: str, message: str, detail: str | None
) -> None:
    done = pgdyno("compare", "default", variant, *SMALL, "--scale", "7", "--blocks", "4")
    assert done.returncode == 2
    assert "loading" not in done.stderr
    assert message in done.stderr
    assert detail is None or detail in done.stderr


def test_huge_pages_that_are_not_there_stop_the_run_with_the_servers_words() -> None:
    with alone():  # other tests reserve some for a while
        pages = Path("/proc/sys/vm/nr_hugepages").read_text().strip()
        if pages != "0":
            pytest.skip(f"this host has {pages} huge pages, so that a server that asks for them may get them")
        done = pgdyno("compare", "a", "b:huge_pages=on", *SMALL, "--blocks", "4")
    assert done.returncode == 1
    assert "the server did not start" in done.stderr
    assert "Cannot allocate memory" in done.stderr


def test_a_variant_that_may_lose_data_is_refused_on_the_command_line() -> None:
    done = pgdyno("compare", "default", "fast:fsync=off", *SMALL)
    assert done.returncode == 4
    assert 'variant "fast" is not durable: fsync=off' in done.stderr
    assert "experiment file" in done.stderr


def test_an_experiment_file_may_and_every_output_is_marked(home: Path) -> None:
    file = home / "unsafe.toml"
    file.write_text(
        'question = "What does fsync cost?"\nworkloads = ["pgbench-select"]\n'
        "[design]\nrounds = 2\nblocks_per_round = 1\nblock_s = 0.3\nclients = 1\n"
        '[variants.default]\n[variants.fast]\nsettings = { fsync = "off" }\n'
    )
    done = pgdyno("run", str(file), "--embedded", "--scale", "1", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["notes"][0] == "NOT DURABLE: fast: fsync=off"


def test_an_experiment_file_does_not_measure_a_running_server(home: Path) -> None:
    done = pgdyno("run", str(home / "any.toml"), "--dsn", "host=/nowhere", "--allow-load")
    assert done.returncode == 2
    assert "ERROR:  an experiment file measures only scratch servers  (PGD-100)" in done.stderr


def test_the_durability_lock_holds_for_factors_too() -> None:
    done = pgdyno("run", "noise-floor", "--factor", "fsync=on,off", *SMALL)
    assert done.returncode == 4
    assert "is not durable: fsync=off" in done.stderr


def test_a_generator_that_is_not_installed_names_its_package(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = home / "bin"
    without.mkdir(exist_ok=True)
    for program in ("setpriv", "sh", "taskset", "cp", "sync"):
        link = without / program
        if not link.exists():
            link.symlink_to(
                f"/usr/bin/{program}" if Path(f"/usr/bin/{program}").exists() else f"/bin/{program}"
            )
    workload = ("--workload", "sysbench-read-only", "--scale", "2", "--generator", "sysbench")
    monkeypatch.setenv("PATH", str(without))  # root's own PATH is fixed before a command begins
    asked = ["compare", "a", "b", *workload, "--embedded", "--blocks", "4"]
    done = CliRunner().invoke(cli, asked, standalone_mode=False)
    assert isinstance(done.exception, GeneratorMissingError)
    assert done.exception.message == 'the load generator "sysbench" is not installed'
    assert "apt install sysbench" in str(done.exception.hint)
    assert not list((home / "datasets").glob("*-sysbench-*-2")), "nothing was loaded for it"
