"""Invariants of a workload's user: kept, broken, and such that do not hold, on real servers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_home import Run, pgdyno
from tests.fix_progress import Remembered
from tests.fix_servers import RealServer, running_server

from pgdyno.base.errors import MeasurementError, UsageError
from pgdyno.measure.arenas.arena import Arena
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.model.experiments.captured import Invariant, Is, NoRows, Unchanged
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.connection.control_connection import READING
from pgdyno.postgres.process.registry import embedded
from pgdyno.store.workload_file import read_workload_file, write_workload_file
from pgdyno.workload.invariants import read_answer
from pgdyno.workload.workload_choice import captured_workload

pytestmark = pytest.mark.server

_ROWS = 500  # of the workload's copy too
_TABLE = """
CREATE TABLE t (id int PRIMARY KEY, worth float8, made timestamptz);
INSERT INTO t SELECT n, n / 3.0, '2026-01-01' FROM generate_series(1, 500) n;
ANALYZE t
"""
KEPT = (
    Invariant("rows stay", "select count(*) from t", Is(_ROWS)),
    Invariant("dates stay", "select max(made) from t", Unchanged()),
    Invariant("no row without a worth", "select id from t where worth is null; ", NoRows()),
)
BROKEN = Invariant("worth stays", "select sum(worth) from t -- as it was", Unchanged())
"""The workload's UPDATE adds to it."""


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    with running_server(pg18_bin, "shared_preload_libraries = 'pg_stat_statements'\n") as started:
        started.execute("CREATE DATABASE d")
        started.execute("CREATE EXTENSION pg_stat_statements", "d")
        started.execute(_TABLE, "d")
        started.execute("CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_write_all_data")
        yield started


def with_invariants(file: Path, *invariants: Invariant) -> Path:
    write_workload_file(file, replace(read_workload_file(file), invariants=invariants))
    return file


def replay(server: RealServer, file: Path, home: Path) -> Run:
    place = ("--dsn", server.dsn_for("app", "d"), "--allow-load", "--for", "2s")
    return pgdyno("workload", "replay", str(file), *place, PGDYNO_HOME=str(home))


def test_a_replay_that_keeps_them_says_so(server: RealServer, workload_file: Path, home: Path) -> None:
    done = replay(server, with_invariants(workload_file, *KEPT), home)
    assert done.returncode == 0, done.stderr
    assert "Invariants kept: rows stay, dates stay, no row without a worth" in done.stdout


def test_a_replay_that_breaks_one_has_no_result(server: RealServer, workload_file: Path, home: Path) -> None:
    done = replay(server, with_invariants(workload_file, *KEPT, BROKEN), home)
    assert done.returncode == 1
    assert 'the result is not valid: w broke its invariant "worth stays"' in done.stderr
    assert "before the load and" in done.stderr
    assert "pgdyno workload edit" in done.stderr
    assert "transactions per second" not in done.stdout


def test_one_that_does_not_hold_before_the_load_is_refused_and_nothing_is_loaded(
    server: RealServer, workload_file: Path, home: Path
) -> None:
    [[before]] = server.execute("SELECT sum(worth) FROM t", "d")
    done = replay(server, with_invariants(workload_file, replace(KEPT[0], expected=Is(7))), home)
    assert done.returncode == 2
    assert 'the invariant "rows stay" of w does not hold before the load' in done.stderr
    assert f"its query returns {_ROWS}, but must return 7" in done.stderr
    assert server.execute("SELECT sum(worth) FROM t", "d") == [(before,)]


@pytest.mark.parametrize(
    ("sql", "detail"),
    [
        ("select 1 from nowhere", 'relation "nowhere" does not exist'),
        ("select 1) as x; delete from t; select (1", "multiple commands"),
        ("with gone as (delete from t returning 1) select count(*) from gone", "must be at the top level"),
        ("select nextval('s')", "cannot execute nextval() in a read-only transaction"),
    ],
)
def test_a_query_that_the_server_refuses_is_named(server: RealServer, sql: str, detail: str) -> None:
    server.execute("CREATE SEQUENCE IF NOT EXISTS s", "d")
    in_public = {**READING, "search_path": "public"}
    dsn = server.dsn_for("app", "d")
    with closing(connect(dsn, settings=in_public)) as connection, pytest.raises(UsageError) as caught:
        read_answer(connection, Invariant("i", sql, NoRows()))
    assert caught.value.message == 'the query of the invariant "i" failed'
    assert detail in (caught.value.detail or "")
    assert server.execute("SELECT count(*) FROM t", "d") == [(_ROWS,)]


def test_a_query_of_two_columns_is_refused(server: RealServer) -> None:
    with closing(connect(server.dsn_for("postgres", "d"))) as connection, pytest.raises(UsageError) as caught:
        read_answer(connection, Invariant("i", "select 1, 2", NoRows()))
    assert caught.value.message == 'the query of the invariant "i" returns 2 columns'


VARIANTS = (Variant("default"), Variant("big", {"work_mem": "64MB"}))


def measured(arena: Arena, workload: Workload, order: list[int]) -> None:
    """Let the servers at these places of the order do some of a workload, as a round does."""
    design = Design(clients=1)
    with (
        arena.arms(VARIANTS, [0, 1], workload.data_set) as arms,
        closing(arena.loads.prepare(arms, ["one", "other"], workload, design, 5.0, [0, 1])) as turns,
    ):
        for arm in order:
            turns.warm_up(arm, 0.5)
        turns.end()


@pytest.mark.usefixtures("home")
def test_servers_under_comparison_are_asked_before_and_after_their_load(workload_file: Path) -> None:
    workload = captured_workload(with_invariants(workload_file, *KEPT))
    broken = captured_workload(with_invariants(workload_file, BROKEN))
    with open_scratch_arena(embedded(), VARIANTS, Remembered(), is_isolated=False) as arena:
        for variant in VARIANTS:
            arena.load(variant, workload.data_set)
        arena.restore(VARIANTS, [0, 1], workload.data_set)
        measured(arena, workload, [0, 1])
        with pytest.raises(MeasurementError) as both:
            measured(arena, broken, [0, 1])
        with pytest.raises(MeasurementError) as one:
            measured(arena, broken, [1])
    message = 'the result is not valid: w broke its invariant "worth stays"'
    assert both.value.message == one.value.message == message
    assert "on default: " in (both.value.detail or "")
    assert "; on big: " in (both.value.detail or "")
    assert (one.value.detail or "").startswith("on big: its query returned ")
    assert "it holds on the other servers" in (one.value.hint or "")


def test_bench_ends_with_the_broken_invariant(workload_file: Path, home: Path) -> None:
    file = with_invariants(workload_file, BROKEN)
    arguments = ("bench", str(file), "--embedded", "--clients", "1", "--blocks", "1")
    done = pgdyno(*arguments, PGDYNO_HOME=str(home))
    assert done.returncode == 1, done.stdout
    assert 'the result is not valid: w broke its invariant "worth stays"' in done.stderr
