"""Parameters of statements on views and of pages, captured from a server's statistics and replayed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.fix_bank import SETTINGS, capture, repeating
from tests.fix_captured import replay_on_a_copy
from tests.fix_copies import bench_briefly
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, running_server

from pgdyno.model.experiments.captured import (
    Between,
    CapturedWorkload,
    ColumnValue,
    Constant,
    Parameter,
)

pytestmark = pytest.mark.server
_MADE = (
    "CREATE EXTENSION pg_stat_statements",
    "CREATE TABLE orders (id int PRIMARY KEY, at timestamptz, note text)",
    "INSERT INTO orders SELECT n, now(), 'note' FROM generate_series(1, 100000) n",
    "CREATE TABLE shuffled (id int PRIMARY KEY, note text)",
    "INSERT INTO shuffled SELECT id, note FROM orders ORDER BY hashint4(id)",
    "CREATE TABLE t (id int PRIMARY KEY, ok bool, v int)",
    "INSERT INTO t SELECT n, n % 2 = 0, n FROM generate_series(1, 10000) n",
    "CREATE TABLE nothing (id int PRIMARY KEY)",
    "CREATE VIEW good AS SELECT id, v, v + id AS total FROM t WHERE ok",
    "CREATE VIEW better AS SELECT id, v, total FROM good WHERE v > 0",
    "VACUUM (ANALYZE)",
)
_PAGES = {
    "select-orders": "SELECT id, at FROM orders ORDER BY id LIMIT 10 OFFSET 30000",
    "select-shuffled": "SELECT id, note FROM shuffled ORDER BY id DESC LIMIT 10 OFFSET 300",
}
_OF_VIEWS = {
    "select-good": "SELECT v FROM good WHERE id = 4712",
    "select-better": "SELECT v FROM better WHERE total = 9424",
    "delete-nothing": "DELETE FROM nothing WHERE id = 8",
}
_COUNTED = """
SELECT sum(s.shared_blks_hit + s.shared_blks_read) / sum(s.calls), sum(s.rows) / sum(s.calls)
FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
WHERE d.datname = '{}' AND s.query LIKE '{}%'
"""


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    """A server that counts statements, with tables in order and at random, and views."""
    with running_server(pg18_bin, SETTINGS + "autovacuum = off\n") as started:
        started.execute("CREATE DATABASE shown")
        for statement in _MADE:
            started.execute(statement, "shown")
        started.execute("CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_write_all_data")
        yield started


def counted(server: RealServer, database: str, statement: str) -> tuple[float, float]:
    """Return blocks and rows per call."""
    [[blocks, rows]] = server.execute(_COUNTED.format(database, statement), "shown")
    return float(blocks), float(rows)


def captured(server: RealServer, file: Path, *statements: str) -> CapturedWorkload:
    """Capture statements that run again and again."""
    server.execute("SELECT pg_stat_statements_reset()", "shown")
    with ExitStack() as stack:
        for one in statements:
            stack.enter_context(repeating(server, one, "shown"))
        return capture(server, "shown", file, seconds=3)


def parameters_of(workload: CapturedWorkload) -> dict[str, tuple[Parameter, ...]]:
    return {call.statement: call.parameters for one in workload.transactions for call in one.calls}


def test_pages_are_as_far_from_the_first_one_as_the_blocks_read_for_them(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    file = tmp_path / "pages.toml"
    workload = captured(server, file, *_PAGES.values())
    drawn = parameters_of(workload)
    originals = {name: counted(server, "shown", sql[:25]) for name, sql in _PAGES.items()}
    replay_on_a_copy(server, "shown", file, home)
    for name, sql in _PAGES.items():
        limit, offset = drawn[name]
        assert limit == Constant("10")
        assert isinstance(offset, Constant)
        given = int(sql.rpartition(" ")[2])
        assert given / 2 < int(offset.value or 0) < given * 2, drawn
        note = f"{name}: OFFSET $2 is unknown: {offset.value} is used, because a call of the original reads "
        assert any(one.startswith(note) for one in workload.notes), workload.notes
        blocks, rows = counted(server, "shown_copy", sql[:25])
        assert originals[name][0] / 2 < blocks < originals[name][0] * 2
        assert rows == 10


def test_columns_of_views_have_values(server: RealServer, tmp_path: Path, home: Path) -> None:
    file = tmp_path / "views.toml"
    workload = captured(server, file, *_OF_VIEWS.values())
    drawn = parameters_of(workload)
    assert drawn["select-good"] == (ColumnValue("public.t.id"),)
    assert drawn["select-better"] == (Between(1, 100),)
    computed = "public.better.total is computed by its view, so its values are unknown"
    assert f"select-better: {computed}" in workload.notes
    assert "select-better: values of $1 are drawn by type only" in workload.notes
    replayed = replay_on_a_copy(server, "shown", file, home)["replay"]
    assert replayed["notes"] == ["public.nothing.id has no values: values are drawn by type"]
    assert replayed["run"]["failures"] == []
    _, rows = counted(server, "shown_copy", "SELECT v FROM good")
    assert 0.4 < rows < 0.6  # half of the rows are shown by the view

    copied = pgdyno("workload", "copy", str(file), "--dsn", server.dsn_for("postgres", "shown"))
    assert copied.returncode == 0, copied.stderr
    measured = bench_briefly(server, file, home, "--unlike")
    assert measured.returncode == 0, measured.stderr
    for note in (*replayed["notes"], computed):
        assert note in " ".join(measured.stdout.split()), measured.stdout
