"""Databases of ours on somebody's server: recorded, locked, closed to others, and dropped by us alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import psycopg
import pytest
from tests.fix_servers import RealServer
from tests.hostile.behaviours import Results
from tests.hostile.peer import Peer
from tests.hostile.rows import Column, Value

from pgdyno.apply.session.session import LOADING, take
from pgdyno.base.errors import LockHeldError, ServerError
from pgdyno.postgres.process.workload_databases import MARK, WorkloadDatabases

pytestmark = pytest.mark.server

_MOST_STATEMENTS = 30


def databases_from(server: RealServer, home: Path, database: str = "postgres") -> WorkloadDatabases:
    return WorkloadDatabases(server.dsn_for("postgres", database), home, partial(take, lock=LOADING))


def names(server: RealServer) -> set[str]:
    rows = server.execute("SELECT datname FROM pg_database WHERE datname LIKE 'pgdyno%'")
    return {name for (name,) in rows}


@pytest.fixture
def stranger(pg18: RealServer) -> Iterator[str]:
    """A role that may do nothing but log in."""
    pg18.execute("CREATE ROLE stranger LOGIN")
    yield "stranger"
    pg18.execute("DROP ROLE stranger")


def killed(server: RealServer, home: Path, at: int, when: str) -> str:
    """Let another process make databases and die at a statement; return that, or "done"."""
    driver = Path(__file__).parents[2] / "loader_driver.py"
    command = [sys.executable, str(driver), server.dsn, str(home), str(at), when]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=250)
    assert ended.returncode in {0, -9}, ended.stderr
    return ended.stdout.rstrip("\n")


@pytest.mark.timeout(300)
def test_killed_at_any_statement_its_databases_go_with_its_owners_next_run_alone(
    pg18: RealServer, tmp_path: Path
) -> None:
    left: list[tuple[str, int]] = []
    for at in range(1, _MOST_STATEMENTS):
        mine = tmp_path / f"mine-{at}"
        statement = killed(pg18, mine, at, "after")
        if statement == "done":
            break
        there = names(pg18)
        left.append((statement.split()[0], len(there)))
        with databases_from(pg18, tmp_path / "others").held():
            assert names(pg18) == there, f"another workspace dropped them after {statement}"
        with databases_from(pg18, mine).held():
            assert names(pg18) == set(), f"killed after {statement}"
    made = ["CREATE", "COMMENT", "REVOKE", "ALTER"]
    assert [one for one, _ in left] == [*made, *made, "DROP", *made, "DROP", "DROP"]
    assert [count for _, count in left] == [1, 1, 1, 1, 2, 2, 2, 2, 1, 2, 2, 2, 2, 1, 0]


def test_a_database_is_closed_to_everybody_from_the_moment_of_its_creation(
    pg18: RealServer, tmp_path: Path, stranger: str
) -> None:
    assert killed(pg18, tmp_path, 1, "after").startswith("CREATE DATABASE")
    (unmarked,) = names(pg18)
    with pytest.raises(psycopg.OperationalError, match="not currently accepting connections"):
        psycopg.connect(pg18.dsn_for("postgres", unmarked))
    ours = databases_from(pg18, tmp_path)
    with ours.held():
        whole = ours.create("template_0")
        with pytest.raises(psycopg.OperationalError, match="User does not have CONNECT privilege"):
            psycopg.connect(pg18.dsn_for(stranger, whole))
        psycopg.connect(pg18.dsn_for("postgres", whole)).close()
        ours.drop_all()


def test_another_pgdyno_is_refused_from_any_database_until_the_first_has_ended(
    pg18: RealServer, tmp_path: Path
) -> None:
    first = databases_from(pg18, tmp_path / "first")
    second = databases_from(pg18, tmp_path / "second", database="template1")
    with first.held():
        name = first.create("template_0")
        with pytest.raises(LockHeldError) as caught, second.held():
            pytest.fail("it was let in")
        assert caught.value.message == "another pgdyno is loading this server"
        assert (caught.value.detail or "").startswith("the lock is held by pgdyno, process ")
        assert name in names(pg18)
        first.drop_all()
    with second.held():
        assert names(pg18) == set()


def test_a_restart_of_the_server_does_not_end_a_run(scratch_pg18: RealServer, tmp_path: Path) -> None:
    ours = databases_from(scratch_pg18, tmp_path)
    with ours.held():
        template = ours.create("template_0")
        scratch_pg18.stop()
        scratch_pg18.start()
        ours.hold()
        with pytest.raises(LockHeldError), databases_from(scratch_pg18, tmp_path / "second").held():
            pytest.fail("the lock was free after the restart")
        ours.copy(template, "seat_0_0")
        assert len(ours.there()) == 2
        ours.drop_all()
    assert names(scratch_pg18) == set()


def test_a_database_that_was_taken_over_or_has_no_record_is_left(pg18: RealServer, tmp_path: Path) -> None:
    ours = databases_from(pg18, tmp_path)
    with ours.held():
        taken = ours.create("template_0")
        pg18.execute(f"COMMENT ON DATABASE {taken} IS 'the results of spring'")
        pg18.execute("CREATE DATABASE pgdyno_seat_0_0")
        pg18.execute(f"COMMENT ON DATABASE pgdyno_seat_0_0 IS '{MARK}'")
        ours.drop_all()
    assert names(pg18) == {taken, "pgdyno_seat_0_0"}
    for name in names(pg18):
        pg18.execute(f"DROP DATABASE {name}")


def test_a_record_is_on_disk_before_the_server_is_asked(pg18: RealServer, tmp_path: Path) -> None:
    assert killed(pg18, tmp_path, 1, "before").startswith("CREATE DATABASE")
    (record,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert record.name.startswith("pgdyno_template_0_")
    assert names(pg18) == set()
    with databases_from(pg18, tmp_path).held():
        assert not record.exists()


def test_where_databases_are_recorded_is_not_chosen_by_the_server(pg18: RealServer, tmp_path: Path) -> None:
    def identifier(column: Column, value: Value) -> Value:
        return b"../outside" if column.name == b"system_identifier" else value

    def text(column: Column) -> Column:
        return replace(column, type_oid=25) if column.name == b"system_identifier" else column

    socket = pg18.socket_directory / f".s.PGSQL.{pg18.port}"
    with Peer(socket, lambda: Results(identifier, text)) as peer:
        ours = WorkloadDatabases(peer.dsn, tmp_path / "databases", partial(take, lock=LOADING))
        with pytest.raises(ServerError) as caught, ours.held():
            ours.create("planted")
    assert caught.value.message == "the server does not respond as PostgreSQL does"
    assert not (tmp_path / "outside").exists()
    assert names(pg18) == set()
