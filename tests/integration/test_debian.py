"""Debian's PostgreSQL 15: inspected, advised, accelerated and reverted over its DSN."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner
from tests.fix_debian import VERSION, DebianCluster, debian_cluster
from tests.fix_home import pgdyno
from tests.fix_rounds import WHATEVER_ELSE_RUNS
from tests.shop import buying

from pgdyno.cli.main import cli
from pgdyno.model.experiments.experiment import Design

# Rounds as many as a verdict takes, each as short as can be; what comes out does not matter here.
SHORT = Design(blocks_per_round=1, block_s=0.5, warmup_s=0.2, thresholds=WHATEVER_ELSE_RUNS)
pytestmark = [pytest.mark.server, pytest.mark.debian, pytest.mark.usefixtures("home")]


@pytest.fixture(scope="module")
def debian15() -> Iterator[DebianCluster]:
    """A cluster for all tests: each puts back what it changes."""
    with debian_cluster() as made:
        yield made


def settings(cluster: DebianCluster) -> dict[str, str]:
    """Return every setting that can be changed, as it is in force."""
    with psycopg.connect(cluster.dsn) as connection:
        rows = connection.execute("SELECT name, setting FROM pg_settings WHERE context <> 'internal'")
        return dict(rows.fetchall())


def file_settings(cluster: DebianCluster) -> list[tuple[object, ...]]:
    return cluster.execute(
        "SELECT sourcefile, name, setting, applied, error FROM pg_file_settings ORDER BY 1, 2"
    )


def test_a_running_cluster_is_inspected_and_advised(debian15: DebianCluster) -> None:
    inspected = pgdyno("inspect", "--dsn", debian15.dsn, "--json")
    assert inspected.returncode == 0, inspected.stderr
    server = json.loads(inspected.stdout)["server"]
    assert server["version_num"] // 10_000 == int(VERSION)
    assert server["is_colocated"]["value"] is True
    advised = pgdyno("advise", "--dsn", debian15.dsn, "--storage", "ssd", "--json")
    assert advised.returncode == 0, advised.stderr
    assert "shared_buffers" in json.loads(advised.stdout)["settings"]


def test_a_plan_is_applied_with_a_restart_and_reverted_without_a_trace(debian15: DebianCluster) -> None:
    before, files = settings(debian15), file_settings(debian15)
    auto_conf = debian15.data_directory / "postgresql.auto.conf"
    content = auto_conf.read_bytes()
    restart = ("--allow-restart", "--restart-command", f"pg_ctlcluster {VERSION} {debian15.name} restart")

    refused = pgdyno("apply", "--dsn", debian15.dsn)
    assert refused.returncode == 4
    assert "--allow-restart" in refused.stderr
    assert auto_conf.read_bytes() == content

    applied = pgdyno("apply", "--dsn", debian15.dsn, *restart, "--json")
    assert applied.returncode == 0, applied.stderr
    assert settings(debian15)["shared_buffers"] != before["shared_buffers"]
    status = json.loads(pgdyno("status", "--dsn", debian15.dsn, "--json").stdout)["status"]
    assert {"shared_buffers", "max_wal_size"} <= {entry["key"] for entry in status["entries"]}

    reverted = pgdyno("revert", "--dsn", debian15.dsn, *restart)
    assert reverted.returncode == 0, reverted.stderr
    assert settings(debian15) == before
    assert file_settings(debian15) == files
    assert auto_conf.read_bytes() == content


def test_a_running_cluster_is_accelerated_beside_itself_and_only_changed_if_that_pays(
    debian15: DebianCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgdyno.model.experiments.experiment.Design", partial(replace, SHORT))
    before = settings(debian15)
    restart = ("--allow-restart", "--restart-command", f"pg_ctlcluster {VERSION} {debian15.name} restart")
    workload = ("--workload", "pgbench-select", "--scale", "1", "--budget", "50s")
    done = CliRunner().invoke(
        cli, ["accelerate", "--dsn", debian15.dsn, "--yes", *workload, *restart, "--json"]
    )
    assert done.exit_code == 0, done.output + str(done.exception)
    own = "the server's own statements, since their last reset: statements are not distinguished: "
    assert f"{own}this database has no extension pg_stat_statements" in done.stderr
    document = json.loads(done.stdout)
    assert {one["variant"] for one in document["comparisons"]} == {"plan"}
    assert document["design"]["is_isolated"] is True
    if document["applied"] is None:
        state = document["decision"]["state"]
        assert document["not_applied"] == f'it is applied only if it pays, and the decision is "{state}"'
        assert state != "pays"
        assert settings(debian15) == before
    else:
        assert settings(debian15)["shared_buffers"] != before["shared_buffers"]
        assert pgdyno("revert", "--dsn", debian15.dsn, "--all", *restart).returncode == 0
        assert settings(debian15) == before


@pytest.mark.long
def test_a_servers_own_workload_proves_its_plan(
    debian15: DebianCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Capture, copy, accelerate, apply and revert, while customers are at work on the server."""
    monkeypatch.setattr("pgdyno.model.experiments.experiment.Design", partial(replace, SHORT))
    debian15.execute("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
    debian15.control("restart")
    debian15.execute("CREATE DATABASE shop")
    dsn, file = debian15.dsn.replace("dbname=postgres", "dbname=shop"), tmp_path / "shop.toml"
    debian15.execute("CREATE ROLE reading LOGIN IN ROLE pg_monitor, pg_read_all_data")
    reading = dsn.replace("user=postgres", "user=reading")
    buying.make(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements")
    before = settings(debian15)
    restart = ("--allow-restart", "--restart-command", f"pg_ctlcluster {VERSION} {debian15.name} restart")
    with buying.load(dsn):
        captured = pgdyno("workload", "capture", "--dsn", reading, "--for", "4s", str(file))
        copied = pgdyno("workload", "copy", str(file), "--dsn", dsn)
        assert (captured.returncode, copied.returncode) == (0, 0), captured.stderr + copied.stderr
        measured = CliRunner().invoke(
            cli, ["accelerate", "--dsn", dsn, "--workload", str(file), "--budget", "3m", "--json"]
        )
        assert measured.exit_code == 0, measured.output + str(measured.exception)
        assert re.search(r"since their last reset: [\d.]+\s% of the statements' time is ", measured.stderr)
        document = json.loads(measured.stdout)
        assert document["likenesses"]["shop"]["by_quantity"]["calls"] > 0.9
        assert {one["workload"] for one in document["comparisons"]} == {"shop"}
        assert document["applied"] is None
    assert pgdyno("apply", "--dsn", dsn, *restart).returncode == 0
    with buying.load(dsn):
        assert settings(debian15)["shared_buffers"] != before["shared_buffers"]
    assert pgdyno("revert", "--dsn", dsn, "--all", *restart).returncode == 0
    assert settings(debian15) == before


def test_a_server_found_with_fsync_off_is_not_improved_on(debian15: DebianCluster) -> None:
    debian15.execute("ALTER SYSTEM SET fsync = off")
    debian15.execute("SELECT pg_reload_conf()")
    advised = pgdyno("advise", "--dsn", debian15.dsn)
    assert "fsync" in advised.stdout
    done = pgdyno("accelerate", "--dsn", debian15.dsn, "--workload", "pgbench-select", "--scale", "1")
    assert done.returncode == 4
    assert "may lose data as it is set up now" in done.stderr
    assert "fsync" in done.stderr
    debian15.execute("ALTER SYSTEM RESET fsync")
    debian15.execute("SELECT pg_reload_conf()")
