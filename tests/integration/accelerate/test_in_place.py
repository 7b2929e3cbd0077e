"""``accelerate --dsn --allow-load``: a running server itself is measured, and left as it was found."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.fix_debian import VERSION, DebianCluster
from tests.fix_home import pgdyno
from tests.fix_rounds import WHATEVER_ELSE_RUNS

from pgdyno.accelerate.in_place import accelerate_loaded, restarts_at_most
from pgdyno.accelerate.request import AccelerateRequest
from pgdyno.apply.ledger.log import read_journal
from pgdyno.apply.session.session import LOADING, take
from pgdyno.base.errors import PermissionNotGivenError
from pgdyno.builds.switching.server_access import server_access
from pgdyno.cli.output import Lines
from pgdyno.measure.conditions import Conditions
from pgdyno.model.experiments.experiment import Design, DesignKind
from pgdyno.plan.attached import attach
from pgdyno.plan.engine.resources import Figures
from pgdyno.postgres.process.workload_databases import WorkloadDatabases
from pgdyno.workload.workload_choice import find_workloads

pytestmark = [pytest.mark.server, pytest.mark.debian, pytest.mark.usefixtures("home")]

SMALL = replace(Design(), warmup_s=0.2, clients=1, thresholds=WHATEVER_ELSE_RUNS)


def restart_command(cluster: DebianCluster) -> str:
    return f"pg_ctlcluster {VERSION} {cluster.name} restart"


def state(cluster: DebianCluster) -> tuple[object, ...]:
    """Return everything that must be the same afterwards: settings, files, databases."""
    return (
        cluster.execute("SELECT name, setting FROM pg_settings WHERE context <> 'internal' ORDER BY 1"),
        cluster.execute("SELECT sourcefile, name, setting, applied FROM pg_file_settings ORDER BY 1, 2"),
        cluster.execute("SELECT datname FROM pg_database ORDER BY 1"),
    )


def request_for(cluster: DebianCluster) -> AccelerateRequest:
    attached = attach(cluster.dsn, Figures())
    workloads = find_workloads(("pgbench-tpcb", "pgbench-select"), (), 1)
    conditions = Conditions(attached.installation, workloads, SMALL)
    return AccelerateRequest(conditions, attached.base, budget_s=150.0, subject=attached.subject)


# After the first receipt: amid a switch, a trial, a revert; the first is always tried.
KILLED_S = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0)


@pytest.fixture
def short_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgdyno.measure.design.schedule._TRIAL_S", 0.5)


@pytest.mark.usefixtures("short_trials")
def test_the_server_itself_is_measured_under_both_configurations_and_left_as_found(
    debian15_as_found: DebianCluster,
) -> None:
    before = state(debian15_as_found)
    request = request_for(debian15_as_found)
    access = server_access(debian15_as_found.dsn, restart_command(debian15_as_found))
    done = accelerate_loaded(
        attach(debian15_as_found.dsn, Figures()), request, access, Lines(), allow_restart=True
    )
    assert state(debian15_as_found) == before
    assert restarts_at_most(request) == 11  # five rounds, into the plan and out of it, and into it for good
    experiment = done.experiment
    assert experiment.design.kind is DesignKind.ALTERNATING
    assert {arm.variant for block in experiment.blocks for arm in block.arms} == {"as-found", "plan"}
    assert {block.workload for block in experiment.blocks} == {"pgbench-tpcb", "pgbench-select"}
    ran = {(s.variant, s.name): s.effective for s in experiment.settings}
    assert ran["as-found", "shared_buffers"] == "64MB"  # as the cluster's own file says
    assert ran["plan", "shared_buffers"] != "64MB"
    metrics = {name for block in experiment.blocks for arm in block.arms for name in arm.values}
    assert {"throughput_tps", "server_cpu_us_per_transaction", "latency_ms_p99"} <= metrics


def test_a_plan_with_a_restart_is_not_measured_on_a_server_that_must_not_be_restarted(
    debian15_as_found: DebianCluster,
) -> None:
    access = server_access(debian15_as_found.dsn)
    with pytest.raises(PermissionNotGivenError) as caught:
        accelerate_loaded(
            attach(debian15_as_found.dsn, Figures()),
            request_for(debian15_as_found),
            access,
            Lines(),
            allow_restart=False,
        )
    assert caught.value.hint is not None
    assert "--allow-restart" in caught.value.hint


@pytest.mark.timeout(1800)  # with all points
def test_killed_while_measuring_it_is_reverted_and_its_databases_go_with_the_next_run(
    debian15: DebianCluster, home: Path, pytestconfig: pytest.Config
) -> None:
    before = state(debian15)
    restart = ("--allow-restart", "--restart-command", restart_command(debian15))
    for later_s in KILLED_S if pytestconfig.getoption("--all-kill-points") else KILLED_S[:1]:
        kill_while_changed(("accelerate", "--dsn", debian15.dsn, "--yes", *restart), home, later_s)
        done = pgdyno("revert", "--dsn", debian15.dsn, "--all", *restart)
        assert done.returncode == 0, done.stderr
        assert state(debian15)[:2] == before[:2], f"killed {later_s} s after the first change"
        with WorkloadDatabases(debian15.dsn, home / "databases", partial(take, lock=LOADING)).held():
            assert state(debian15) == before


CHANGED_FIRST = ("--seed", "5")
"""The first trial is that of the changed configuration: 12 s of load on the server as found are spared."""


def kill_while_changed(command: tuple[str, ...], home: Path, later_s: float) -> None:
    """Run a command with load on the server, and kill it so long after the first receipt is there."""
    load = ("--allow-load", "--workload", "pgbench-select", "--scale", "1", *CHANGED_FIRST)
    with subprocess.Popen(
        [sys.executable, "-m", "pgdyno", *command, *load],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PGDYNO_HOME": str(home)},
    ) as process:
        deadline = time.monotonic() + 120
        while not read_journal(home / "journal").open:
            assert process.poll() is None, "it ended before anything was changed"
            assert time.monotonic() < deadline, "nothing was changed within two minutes"
            time.sleep(0.05)
        time.sleep(later_s)
        process.kill()
