"""``pgdyno run peers`` on real servers, at a size that takes seconds."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from tests.fix_home import Run, pgdyno
from tests.fix_machine import alone, lent_huge_pages
from tests.fix_tpch import needs_tpchgen

from pgdyno.measure.view.repeat import repeat_command
from pgdyno.store.experiments import ExperimentStore

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home", "pg18_bin")]

TINY = ("--scale", "1", "--clients", "1", "--block", "100ms", "--slice", "50ms", "--as-booted")
FEWEST_BLOCKS = 4  # with an interval
PEERS = (
    "amazon-rds", "azure-flexible", "cloud-sql", "pg-configurator", "pgconfig", "pgtune", "timescaledb-tune",
)  # fmt: skip


def run_peers(*options: str) -> Run:
    """Run the study. Servers get huge pages lent: of a pool those of other tests would take some."""
    with alone(), lent_huge_pages():
        return pgdyno("run", "peers", "--embedded", *options, "--json")


def test_every_peer_stands_beside_the_plan_on_the_memory_that_is_stated(home: Path) -> None:
    asked = ("--workload", "pgbench-tpcb", "--memory", "1280MB", "--variant", "mine:work_mem=7MB")
    done = run_peers(*asked, *TINY, "--blocks", "1")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    measured = {one["variant"] for one in document["comparisons"]}
    assert {*PEERS, "plan", "mine"} <= measured
    effective = {(one["variant"], one["name"]): one["effective"] for one in document["settings"]}
    assert effective["pgtune", "shared_buffers"] == "320MB"  # a quarter of 1280 MB
    assert effective["timescaledb-tune", "shared_buffers"] == "320MB"
    assert effective["azure-flexible", "shared_buffers"] == "160MB"  # an eighth, up to 2 GB
    assert effective["mine", "work_mem"] == "7MB"
    assert effective["pg-configurator", "lock_timeout"] == "10s"
    notes = [note.replace("\N{NO-BREAK SPACE}", " ") for note in document["notes"]]
    (machine,) = (note for note in notes if note.startswith("every configuration is made for a machine"))
    assert "1.25 GB of memory" in machine
    assert "max_connections = 14" in machine  # 1 client, 10 to spare, 3 reserved
    assert any(note.startswith("TuneD's profile is not compared") for note in notes)
    assert any("pgconfig without listen_addresses = *" in note for note in notes)
    with closing(ExperimentStore(home / "experiments" / "experiments.sqlite")) as store:
        stored = store.load(document["experiment"])
    assert stored.options == {"memory": "1280MB"}
    assert stored.baseline == "default"
    assert document["peers"] == []  # one block tells nothing


@pytest.mark.long
def test_every_peer_has_a_ratio_to_the_plan(home: Path) -> None:
    done = run_peers("--workload", "pgbench-tpcb", "--variant", "mine:work_mem=7MB", *TINY, "--blocks", "4")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    with closing(ExperimentStore(home / "experiments" / "experiments.sqlite")) as store:
        blocks = store.load(document["experiment"]).blocks
    # Servers of other tests run beside this: blocks that they disturb do not count.
    counted = [block for block in blocks if not block.void_reasons]
    told = ["pgbench-tpcb"] if len(counted) >= FEWEST_BLOCKS else []
    assert [one["workload"] for one in document["peers"]] == told
    for peers in document["peers"]:
        assert set(peers["ratios"]) == {*PEERS, "mine"}
        for ratios in peers["ratios"].values():
            assert ratios["plan"]["low"] <= ratios["plan"]["point"] <= ratios["plan"]["high"]


def effective_of(done: Run) -> dict[tuple[str, str], str]:
    """Return the settings of every server, by variant and name."""
    assert done.returncode == 0, done.stderr
    return {(one["variant"], one["name"]): one["effective"] for one in json.loads(done.stdout)["settings"]}


def test_steps_of_the_insert_benchmark_run_in_passes_with_every_peer(home: Path) -> None:
    done = run_peers(
        "--benchmark", "insert-benchmark", "--step", "l.i0", "--rows", "2000/500/100", "--clients", "1",
        "--memory", "2GB", "--blocks", "1", "--as-booted",
    )  # fmt: skip
    effective = effective_of(done)
    document = json.loads(done.stdout)
    assert document["design"]["kind"] == "alternating"
    assert {one["variant"] for one in document["settings"]} >= {*PEERS, "plan"}
    assert effective["pgtune", "shared_buffers"] == "512MB"  # a quarter of 2 GB: it runs alone
    assert effective["pgtune", "max_connections"] == "16"  # 3 sessions, 10 to spare, 3 reserved
    with closing(ExperimentStore(home / "experiments" / "experiments.sqlite")) as store:
        stored = store.load(document["experiment"])
    assert stored.workloads == ("insert-benchmark-l.i0",)
    assert dict(stored.options) == {
        "memory": "2048MB", "benchmark": "insert-benchmark", "rows": "2000/500/100", "mode": "corrected",
    }  # fmt: skip
    assert (repeat_command(stored) or "").startswith(
        "pgdyno run peers --embedded --memory 2048MB --benchmark insert-benchmark --rows 2000/500/100 "
        f"--mode corrected --step l.i0 --blocks {stored.design.rounds} --seed "  # disturbed ones are repeated
    )
    measured = {arm.variant for block in stored.blocks for arm in block.arms}
    assert measured == {one.name for one in stored.variants}


@pytest.mark.long
@needs_tpchgen
def test_runs_like_tpch_are_measured_with_every_peer(home: Path) -> None:
    asked = ("--benchmark", "tpch", "--scale", "0.01", "--memory", "2GB", "--blocks", "1", "--as-booted")
    done = run_peers(*asked)
    assert effective_of(done)["pgconfig", "shared_buffers"] == "512MB"
    document = json.loads(done.stdout)
    assert [one["name"] for one in document["tpch"]["executions"]][-2:] == ["power", "throughput"]
    assert any(note.startswith("configured for data warehouses: ") for note in document["notes"])
    effective = effective_of(done)
    assert effective["pgtune", "default_statistics_target"] == "500"
    assert effective["pgconfig", "work_mem"] == "64MB"  # half of 2 GB for 16 connections
    assert effective["pg-configurator", "parallel_setup_cost"] == "500"
    with closing(ExperimentStore(home / "experiments" / "experiments.sqlite")) as store:
        stored = store.load(document["experiment"])
    assert dict(stored.options) == {"memory": "2048MB", "benchmark": "tpch", "scale": "0.01"}
    assert (repeat_command(stored) or "").startswith(
        "pgdyno run peers --embedded --memory 2048MB --benchmark tpch --scale 0.01 "
        f"--blocks {stored.design.rounds} --seed "
    )
    power = [block for block in stored.blocks if block.workload == "tpch-power"]
    assert {arm.variant for block in power for arm in block.arms} == {one.name for one in stored.variants}


def test_a_factor_and_a_name_that_is_taken_are_refused() -> None:
    done = pgdyno("run", "peers", "--embedded", "--factor", "jit=on,off")
    assert done.returncode == 2
    assert "the study peers varies whole configurations itself" in done.stderr
    done = pgdyno("run", "peers", "--embedded", "--variant", "pgtune:jit=off")
    assert done.returncode == 2
    assert 'two configurations have the name "pgtune"' in done.stderr
    done = pgdyno("run", "peers", "--embedded", "--memory", "900GB")
    assert done.returncode == 2
    assert "is more than the" in done.stderr
    assert "is more than the available" in done.stderr
