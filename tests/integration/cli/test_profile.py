"""Where a transaction's time goes, on a real server: as its own load, and as the traffic of a running one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, wait_until

from pgdyno.profile import parts
from pgdyno.profile.account import UNSEEN

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

WITH_SAMPLES = os.geteuid() == 0 and shutil.which("perf") is not None
needs_samples = pytest.mark.skipif(not WITH_SAMPLES, reason="samples of stacks take root and perf")
WITHOUT_SAMPLES = "the server does not count the time of Parse and Bind, and there are no samples of it"
SLEEP_MS = 5
SLEEPING = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'"


def profiled(*arguments: str) -> dict[str, Any]:
    done = pgdyno("profile", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    [found] = json.loads(done.stdout)["profiles"]
    return dict(found)


def us_by_group(found: dict[str, Any], group: str) -> dict[str, float]:
    return {line["name"]: line["time"]["us"] for line in found["lines"] if line["group"] == group}


@pytest.fixture(scope="module")
def bank(pg18_bin: Path, home: Path) -> dict[str, Any]:
    """The profile of pgbench's transactions: with one branch, clients wait for each other's rows."""
    del home
    named = ("pgbench-tpcb", "--pg-bin", str(pg18_bin), "--scale", "1", "--clients", "4", "--cycles", "2")
    return profiled(*named)


def test_an_account_has_the_time_of_a_transaction(bank: dict[str, Any]) -> None:
    assert bank["workload"] == "pgbench-tpcb"
    assert bank["sessions"] == 4
    # Four clients, each of which begins a transaction when the one before has ended: on average 4 are under
    # way. Those that cross an edge of a cycle are much longer where the machine stalls.
    assert 4 / 3 < bank["transactions_per_s"] * bank["latency"]["us"] / 1e6 < 4 * 3
    assert us_by_group(bank, "client").keys() == {"load generator's CPU time"}
    assert all(len(line["by_cycle"]) == 2 for line in bank["lines"])


def test_clients_that_wait_for_a_row_are_seen_waiting_for_it(bank: dict[str, Any]) -> None:
    waits = us_by_group(bank, "waiting")
    assert any(name.startswith("Lock:") for name in waits), waits


@needs_samples
def test_samples_tell_the_parts_of_the_work_apart(bank: dict[str, Any]) -> None:
    usual = ("CPUs idled as booted", "no hardware counters: ")
    assert [one for one in bank["remarks"] if not one.startswith(usual)] == []
    assert (bank["counted"] is None) == any(one.startswith(usual[1]) for one in bank["remarks"])
    [layout] = bank["layouts"]
    assert not layout["is_simulated"]
    assert sum(page["share"] for page in layout["heat"]) == pytest.approx(1)
    assert layout["counted"] > 100
    work = us_by_group(bank, "server")
    assert {parts.ROW_CHANGES, parts.WAL_FLUSH, parts.SENDING, parts.RECEIVING} <= work.keys(), work
    assert work.get(parts.OTHER, 0.0) < 0.1 * sum(work.values()), work
    assert "sendto" in {entry["name"] for entry in bank["kernel"]}
    assert us_by_group(bank, "run queue").keys() | us_by_group(bank, "waking up").keys()


def test_statements_are_counted_per_transaction(bank: dict[str, Any]) -> None:
    calls = {one["sql"].partition(" ")[0]: one["calls"] for one in bank["statements"]}
    assert calls["INSERT"] == pytest.approx(1.0, abs=0.05)
    updates = sum(one["calls"] for one in bank["statements"] if one["sql"].startswith("UPDATE"))
    assert updates == pytest.approx(3.0, abs=0.15)


def test_statements_have_what_their_plans_read_and_what_they_wait_for(bank: dict[str, Any]) -> None:
    named = {one["name"]: one for one in bank["statements"]}
    update = named["update-branch"]  # most of the time is spent on waiting for its only row
    assert update["rows_read"] == 1
    assert update["is_estimated"]  # what writes is not run
    assert update["node"].startswith("Seq Scan on pgbench_branches (filter ")
    waits = {event for one in bank["statements"] for event, _ in one["waits"]}
    assert any(event.startswith("Lock:") for event in waits), waits


@pytest.mark.long
def test_two_variants_are_profiled_in_turns_and_a_page_is_written(pg18_bin: Path, home: Path) -> None:
    page = home / "profile.html"
    variants = ("--compare", "default", "generic:plan_cache_mode=force_generic_plan")
    named = (
        "--pg-bin",
        str(pg18_bin),
        "--scale",
        "1",
        "--cycles",
        "2",
        "--clients",
        "1",
        "--output",
        str(page),
    )
    done = pgdyno("profile", "sysbench-read-only", *variants, *named)
    assert done.returncode == 0, done.stderr
    assert "default, sysbench-read-only, 1 sessions: " in done.stdout
    assert "generic, sysbench-read-only, 1 sessions: " in done.stdout
    assert "SELECT c FROM sbtest# WHERE id=$1" in done.stdout
    written = page.read_text()
    assert f"Report: {page}" in done.stdout
    assert written.count("<svg") >= 4
    assert "difference, µs" in written


@contextmanager
def traffic(server: RealServer, tmp_path: Path) -> Iterator[None]:
    """Have two clients of pgbench run transactions with a sleep in them."""
    script = tmp_path / "sleeping.sql"
    script.write_text(
        f"BEGIN;\nSELECT pg_sleep({SLEEP_MS / 1000});\nSELECT count(*) FROM pg_class;\nCOMMIT;\n"
    )
    where = ("-h", str(server.socket_directory), "-p", str(server.port), "-U", "postgres")
    argv = [str(server.bin_directory / "pgbench"), "-n", "-c", "2", "-T", "120", "-f", str(script), *where]
    load = subprocess.Popen([*argv, "postgres"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            wait_until(lambda: connection.execute(SLEEPING).fetchone() == (2,))
        yield
    finally:
        load.terminate()
        load.wait(120)


@pytest.fixture
def watcher(pg18: RealServer) -> Iterator[str]:
    """An ordinary role, as a DSN."""
    with psycopg.connect(pg18.dsn, autocommit=True) as connection:
        connection.execute("CREATE ROLE watcher LOGIN")
        yield pg18.dsn_for("watcher")
        connection.execute("DROP ROLE watcher")


def test_a_role_that_may_see_statistics_alone_sees_sessions_and_no_processes(
    pg18: RealServer, watcher: str, home: Path, tmp_path: Path
) -> None:
    del home
    with psycopg.connect(pg18.dsn, autocommit=True) as connection:
        connection.execute("GRANT pg_read_all_stats TO watcher")
    with traffic(pg18, tmp_path):
        found = profiled("--dsn", watcher, "--for", "8s")
    # Without a view of processes, waiting for a busy CPU after the sleep is part of it.
    slept_us = us_by_group(found, "waiting")["Timeout:PgSleep"]
    assert 0.7 * SLEEP_MS * 1000 <= slept_us <= found["latency"]["us"]
    assert us_by_group(found, "server").keys() <= {UNSEEN}
    assert [one for one in found["remarks"] if one.startswith("no process data")]
    assert [one for one in found["remarks"] if one.endswith(WITHOUT_SAMPLES)]
    assert found["cpu_share"] is None


def test_a_role_that_sees_nobody_is_told(pg18: RealServer, watcher: str, home: Path, tmp_path: Path) -> None:
    del home
    with traffic(pg18, tmp_path):
        done = pgdyno("profile", "--dsn", watcher, "--for", "8s")
    assert done.returncode == 1
    assert "the role may not see other sessions" in done.stderr


def test_an_idle_server_has_no_profile(scratch_pg18: RealServer, home: Path) -> None:
    del home
    done = pgdyno("profile", "--dsn", scratch_pg18.dsn, "--for", "8s")
    assert done.returncode == 1
    assert "almost no transactions within 4 s" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "nothing to profile was named"),
        (
            ("pgbench-select", "--dsn", "host=/nowhere"),
            "WORKLOAD cannot be combined with --dsn",
        ),
        (("pgbench-select", "--embedded", "--for", "8s"), "--for requires --dsn"),
        (("--dsn", "host=/nowhere", "--for", "7s"), "a server cannot be watched for 7 s"),
        (("pgbench-select",), "no PostgreSQL was specified"),
        (("tpch", "--embedded"), 'no workload "tpch"'),
        (("--dsn", "host=/nowhere", "--embedded"), "--embedded cannot be combined with --dsn"),
        (("--dsn", "host=/nowhere", "--simulate"), "--simulate cannot be combined with --dsn"),
    ],
)
def test_mistakes_are_named_before_anything_is_loaded(arguments: tuple[str, ...], said: str) -> None:
    done = pgdyno("profile", *arguments)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
