"""Commands on a server behind a real PgBouncer, which an application uses throughout."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.fix_home import pgdyno
from tests.fix_pooler import Application, Pooler, running_pooler
from tests.fix_progress import Remembered
from tests.fix_servers import RealServer, running_server

from pgdyno.base.errors import RefusedError
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.postgres.connection.connection import connect, connect_to_change, dsn_of
from pgdyno.postgres.process.dump import DumpRequest
from pgdyno.store.workload_file import read_workload_file
from pgdyno.workload import copy_data, sampled_copy, synthetic_copy

pytestmark = pytest.mark.server
_DATABASE = "shop"
_READING = (
    ("inspect",),
    ("levers",),
    ("advise",),
    ("status",),
    ("revert", "--dry-run"),
    ("explain-degree", "SELECT count(*) FROM people"),
    ("workload", "capture", "--for", "2s", "{file}"),
    ("workload", "capture", "--script", "{script}", "{file}"),
)
_CHANGING = (
    ("apply", "--allow-restart", "--restart-command", "false"),
    ("revert",),
    ("workload", "copy", "{captured}"),
    ("workload", "copy", "--sample", "--share", "0.5", "{captured}"),
    ("workload", "copy", "--synthetic", "{captured}"),
    ("workload", "replay", "--allow-load", "--for", "2s", "{captured}"),
    ("run", "parallel-degree", "--query", "SELECT count(*) FROM people", "--allow-load", "--budget", "1m"),
    ("run", "clients", "--allow-load", "--budget", "1m"),
)


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    with running_server(pg18_bin, "shared_preload_libraries = 'pg_stat_statements'\n") as started:
        started.execute(f"CREATE DATABASE {_DATABASE}")
        started.execute("CREATE EXTENSION pg_stat_statements", _DATABASE)
        started.execute("CREATE TABLE people (id int PRIMARY KEY, name text)", _DATABASE)
        started.execute("INSERT INTO people SELECT g, 'n' FROM generate_series(1, 10) g", _DATABASE)
        # One role for both: the pooler gives the application the very session that pgdyno has had.
        started.execute("CREATE ROLE app LOGIN IN ROLE pg_monitor, pg_read_all_data")
        started.execute("GRANT UPDATE ON people TO app", _DATABASE)
        yield started


@pytest.fixture(scope="module")
def pooler(server: RealServer) -> Iterator[Pooler]:
    with running_pooler(server, "transaction") as started:
        yield started


@pytest.fixture
def application(pooler: Pooler) -> Iterator[Application]:
    """An application at work on the only session that the pooler has; nothing may have disturbed it."""
    working = Application(pooler.dsn_for("app", _DATABASE))
    with working.at_work():
        yield working
    assert working.errors == []
    assert len(working.states) == 1, working.states


@pytest.fixture
def files(server: RealServer, tmp_path: Path) -> dict[str, str]:
    """Files that commands are given, by the names in their arguments."""
    script = tmp_path / "app.sql"
    script.write_text("\\set id random(1, 10)\nSELECT name FROM people WHERE id = :id;\n")
    captured = tmp_path / "captured.toml"
    dsn = server.reading_dsn(_DATABASE)
    done = pgdyno("workload", "capture", "--dsn", dsn, "--script", str(script), str(captured))
    assert done.returncode == 0, done.stderr
    return {"file": str(tmp_path / "new.toml"), "script": str(script), "captured": str(captured)}


def words(arguments: tuple[str, ...], files: dict[str, str]) -> list[str]:
    return [one.format(**files) for one in arguments]


@pytest.mark.parametrize("arguments", _READING, ids=" ".join)
def test_what_looks_leaves_a_pooled_session_as_it_was(
    arguments: tuple[str, ...],
    application: Application,
    pooler: Pooler,
    files: dict[str, str],
    own_home: Path,
) -> None:
    done = pgdyno(*words(arguments, files), "--dsn", pooler.dsn_for("app", _DATABASE))
    assert done.returncode == 0, done.stderr
    assert application.errors == []


@pytest.mark.parametrize("arguments", _CHANGING, ids=" ".join)
def test_what_changes_or_loads_is_refused_before_it_sets_anything(
    arguments: tuple[str, ...],
    application: Application,
    pooler: Pooler,
    files: dict[str, str],
    own_home: Path,
    server: RealServer,
) -> None:
    done = pgdyno(*words(arguments, files), "--dsn", pooler.dsn_for("app", _DATABASE))
    assert done.returncode == 4, done.stderr
    assert "the connection goes through a connection pooler" in done.stderr
    assert f"--dsn 'host={server.socket_directory} port={server.port}'" in done.stderr
    assert application.errors == []


def test_a_plan_is_checked_through_a_pooler_and_leaves_the_session_as_it_was(
    pooler: Pooler, home: Path
) -> None:
    dsn = pooler.dsn_for("postgres", _DATABASE)
    working = Application(dsn)
    with working.at_work():
        done = pgdyno("apply", "--dry-run", "--allow-restart", "--dsn", dsn)
    assert done.returncode == 0, done.stderr
    assert (working.errors, len(working.states)) == ([], 1)


@pytest.fixture
def leftover(pooler: Pooler) -> Iterator[None]:
    """A setting that an application has left in the pooled session, and that is planned for the server."""
    with psycopg.connect(pooler.dsn_for("postgres", _DATABASE), autocommit=True) as careless:
        careless.execute("SET maintenance_work_mem = '77MB'; SET work_mem = '77MB'")
        yield
        careless.execute("RESET maintenance_work_mem; RESET work_mem")


def test_what_an_application_has_left_in_the_session_keeps_no_plan_from_its_check(
    pooler: Pooler, home: Path, leftover: None
) -> None:
    dsn = pooler.dsn_for("postgres", _DATABASE)
    done = pgdyno("inspect", "--json", "--dsn", dsn)
    shown = json.loads(done.stdout)["server"]["settings"]
    assert (shown["work_mem"]["setting"], shown["work_mem"]["source"]) == ("4096", "default")
    done = pgdyno("apply", "--dry-run", "--allow-restart", "--dsn", dsn)
    assert done.returncode == 0, done.stderr
    assert "maintenance_work_mem" in done.stdout


@pytest.mark.parametrize("name", ["in the environment", "in the connection string"])
def test_the_name_of_a_session_is_not_left_in_it(
    name: str, pooler: Pooler, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = pooler.dsn_for("app", _DATABASE)
    if name == "in the environment":
        monkeypatch.setenv("PGAPPNAME", "dba")
    with contextlib.closing(
        connect(dsn if name == "in the environment" else f"{dsn} application_name=dba")
    ) as ours:
        assert ours.execute("SELECT current_setting('application_name')").fetchone() == ("dba",)
    monkeypatch.delenv("PGAPPNAME", raising=False)
    with psycopg.connect(dsn, autocommit=True) as nameless:
        assert nameless.execute("SHOW application_name").fetchone() == ("",)


def test_measuring_in_place_is_refused_before_it_sets_anything(
    pooler: Pooler, home: Path, leftover: None
) -> None:
    dsn, restart = pooler.dsn_for("postgres", _DATABASE), ("--allow-restart", "--restart-command", "false")
    working = Application(dsn)
    with working.at_work():
        done = pgdyno("accelerate", "--allow-load", *restart, "--budget", "20m", "--dsn", dsn)
    assert done.returncode == 4, done.stderr
    assert "the connection goes through a connection pooler" in done.stderr
    assert (working.errors, len(working.states)) == ([], 1)


def test_a_captured_workload_is_the_applications(
    application: Application, pooler: Pooler, files: dict[str, str], own_home: Path
) -> None:
    dsn = pooler.dsn_for("app", _DATABASE)
    done = pgdyno("workload", "capture", "--for", "3s", "--json", files["file"], "--dsn", dsn)
    assert done.returncode == 0, done.stderr
    captured = json.loads(done.stdout)["workload"]
    names = {one["name"] for one in captured["statements"]}
    assert names == {"select-people", "update-people", "select-pg_locks"}  # all of the application
    assert all("prepared statement" not in one["why"] for one in captured["omitted"]), captured["omitted"]
    assert all("set_config" not in one["sql"] for one in captured["omitted"]), captured["omitted"]


def test_a_killed_command_leaves_a_pooled_session_as_it_was(
    application: Application, pooler: Pooler, own_home: Path
) -> None:
    dsn = pooler.dsn_for("app", _DATABASE)
    chance = random.Random(1)  # noqa: S311 — no secret
    for _ in range(5):
        command = [sys.executable, "-m", "pgdyno", "inspect", "--dsn", dsn]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.4 + chance.random())
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert application.errors == []


@pytest.mark.parametrize("arguments", _READING[:-2], ids=" ".join)
def test_what_looks_works_where_a_client_keeps_its_session(
    arguments: tuple[str, ...], server: RealServer, files: dict[str, str], own_home: Path
) -> None:
    with running_pooler(server, "session", sessions=4) as pooler:
        working = Application(pooler.dsn_for("app", _DATABASE))
        with working.at_work():
            done = pgdyno(*words(arguments, files), "--dsn", pooler.dsn_for("app", _DATABASE))
        assert done.returncode == 0, done.stderr
        assert working.errors == []


def test_where_each_statement_has_another_session_the_servers_own_address_is_the_way_round(
    server: RealServer,
) -> None:
    with running_pooler(server, "statement") as pooler, pytest.raises(RefusedError) as caught:
        connect(pooler.dsn_for("app", _DATABASE))
    assert caught.value.message == "the connection goes through a connection pooler"
    assert caught.value.detail == "it may run each statement in a different server session"
    assert caught.value.hint == (
        f"connect to the server directly: --dsn 'host={server.socket_directory} port={server.port}'"
    )


class _DumpReachedError(Exception):
    """The server has been checked, and pg_dump would begin."""


_COPYING: tuple[tuple[ModuleType, Callable[[CapturedWorkload, Path, str], object]], ...] = (
    (copy_data, lambda workload, file, dsn: copy_data.copy_data(
        workload, copy_data.CopyRequest(file, dsn, 1e9), Remembered())),
    (synthetic_copy, lambda workload, file, dsn: synthetic_copy.synthetic_copy(
        workload, synthetic_copy.SyntheticRequest(file, dsn), Remembered())),
    (sampled_copy, lambda workload, file, dsn: sampled_copy.sampled_copy(
        workload, sampled_copy.SampleRequest(file, dsn, 0.5, 1e9), Remembered())),
)  # fmt: skip


@pytest.mark.usefixtures("own_home")
@pytest.mark.parametrize(("module", "copy"), _COPYING, ids=["all of it", "synthetic", "sample"])
def test_a_dump_comes_to_the_server_that_was_checked_and_no_other(
    module: ModuleType,
    copy: Callable[[CapturedWorkload, Path, str], object],
    server: RealServer,
    pooler: Pooler,
    files: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[DumpRequest] = []

    def dump(request: DumpRequest, _tell: object) -> None:
        asked.append(request)
        raise _DumpReachedError

    monkeypatch.setattr(module, "dump_database", dump)
    hosts = f"host={server.socket_directory},127.0.0.1 port={server.port},{pooler.port}"
    captured = Path(files["captured"])
    with pytest.raises(_DumpReachedError):
        copy(read_workload_file(captured), captured, f"{hosts} user=app dbname={_DATABASE}")
    there = conninfo_to_dict(asked[0].dsn)
    assert (there["host"], there["port"]) == (str(server.socket_directory), str(server.port))


def test_the_way_to_a_connection_names_its_address(server: RealServer, pooler: Pooler) -> None:
    hosts = f"host=/nonexistent,localhost port={server.port},{pooler.port} user=app dbname={_DATABASE}"
    with contextlib.closing(connect(hosts)) as connection:
        there = conninfo_to_dict(dsn_of(connection, hosts))
    assert (there["host"], there["hostaddr"]) == ("localhost", "127.0.0.1")
    assert (there["port"], there["user"], there["dbname"]) == (str(pooler.port), "app", _DATABASE)


def test_a_session_to_change_a_server_is_refused_before_anything_is_set(
    pooler: Pooler, server: RealServer
) -> None:
    with pytest.raises(RefusedError) as caught:
        connect_to_change(pooler.dsn_for("app", _DATABASE))
    assert caught.value.detail == (
        "settings and locks would remain in a server session that other clients also use"
    )
    with psycopg.connect(pooler.dsn_for("app", _DATABASE), autocommit=True) as other:
        assert other.execute("SHOW search_path").fetchone() == ('"$user", public',)


def test_a_value_that_an_application_has_set_in_a_pooled_session_is_not_the_servers(
    pooler: Pooler, own_home: Path
) -> None:
    dsn = pooler.dsn_for("app", _DATABASE)
    with psycopg.connect(dsn, autocommit=True) as careless:
        careless.execute("SET work_mem = '77MB'; SET statement_timeout = '7s'")
        try:
            done = pgdyno("inspect", "--json", "--dsn", dsn)
        finally:
            careless.execute("RESET work_mem; RESET statement_timeout")
    assert done.returncode == 0, done.stderr
    settings = json.loads(done.stdout)["server"]["settings"]
    assert (settings["work_mem"]["setting"], settings["statement_timeout"]["setting"]) == ("4096", "0")
