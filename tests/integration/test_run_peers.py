"""``pgdyno run peers`` on real servers, at a size that takes seconds."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from tests.fix_home import Run, pgdyno
from tests.fix_machine import alone

from pgdyno.model.errors import HugePagesError
from pgdyno.store.experiments import ExperimentStore

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home", "pg18_bin")]

TINY = ("--scale", "1", "--block", "1s", "--slice", "50ms", "--blocks", "4", "--as-booted")
MOST_THEFTS = 10
PEERS = (
    "amazon-rds", "azure-flexible", "cloud-sql", "pg-configurator", "pgconfig", "pgtune", "timescaledb-tune",
)  # fmt: skip


def run_peers(*options: str) -> Run:
    """Run the study; again while servers of other tests take huge pages of the plan's server."""
    for _ in range(MOST_THEFTS):
        with alone():
            done = pgdyno(
                "run", "peers", "--embedded", "--workload", "pgbench-tpcb", *options, *TINY, "--json"
            )
        if HugePagesError.code not in done.stderr:
            break
    return done


def test_every_peer_stands_beside_the_plan_on_the_memory_that_is_stated(home: Path) -> None:
    done = run_peers("--memory", "1280MB", "--variant", "mine:work_mem=7MB")
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
    (peers,) = document["peers"]
    assert peers["workload"] == "pgbench-tpcb"
    assert set(peers["ratios"]) == {*PEERS, "mine"}
    for ratios in peers["ratios"].values():
        assert ratios["plan"]["low"] <= ratios["plan"]["point"] <= ratios["plan"]["high"]
    notes = [note.replace("\N{NO-BREAK SPACE}", " ") for note in document["notes"]]
    (machine,) = (note for note in notes if note.startswith("every configuration is made for a machine"))
    assert "1.25 GB of memory" in machine
    assert "max_connections = 17" in machine  # 4 clients, 10 to spare, 3 reserved
    assert any(note.startswith("TuneD's profile is not compared") for note in notes)
    assert any("pgconfig without listen_addresses = *" in note for note in notes)
    with closing(ExperimentStore(home / "experiments" / "experiments.sqlite")) as store:
        stored = store.load(document["experiment"])
    assert stored.options == {"memory": "1280MB"}
    assert stored.baseline == "default"


def test_a_factor_and_a_name_that_is_taken_are_refused() -> None:
    done = pgdyno("run", "peers", "--embedded", "--factor", "jit=on,off")
    assert done.returncode == 2
    assert "the study peers varies whole configurations itself" in done.stderr
    done = pgdyno("run", "peers", "--embedded", "--variant", "pgtune:jit=off")
    assert done.returncode == 2
    assert 'two configurations are called "pgtune"' in done.stderr
    done = pgdyno("run", "peers", "--embedded", "--memory", "900GB")
    assert done.returncode == 2
    assert "is more than the" in done.stderr
    assert "available here" in done.stderr
