"""The driver and the programs that its workloads come from make the same tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from tests.fix_servers import RealServer
from tests.integration.load_programs import ROWS, Programs, load

pytestmark = pytest.mark.server

Rows = list[tuple[Any, ...]]

SCHEMA = {
    "columns": """
        SELECT table_name, ordinal_position, column_name, data_type, character_maximum_length, is_nullable,
               column_default
        FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2""",
    "indexes": """
        SELECT pg_get_indexdef(indexrelid), indisprimary, indisunique, indisvalid
        FROM pg_index JOIN pg_class c ON c.oid = indrelid
        WHERE c.relnamespace = 'public'::regnamespace ORDER BY 1""",
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2""",
    "relations": """
        SELECT relname, relkind, reloptions, relpersistence, relreplident
        FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1""",
    "sequences": """
        SELECT sequencename, data_type::text, start_value, increment_by, cycle, cache_size, last_value
        FROM pg_sequences ORDER BY 1""",
}  # fmt: skip


PGBENCH_CONTENT = """
SELECT count(*), md5(string_agg(ctid || t::text, chr(10) ORDER BY ctid)), pg_relation_size('TABLE'),
       pg_indexes_size('TABLE')
FROM TABLE t
"""
# Digits and keys are random: their form, their bounds and the places of rows are not.
SYSBENCH_CONTENT = """
SELECT count(*), md5(string_agg(ctid || ' ' || id || ' ' || translate(c || pad, '123456789', '000000000'),
                                chr(10) ORDER BY ctid)),
       bool_and(k BETWEEN 1 AND 10000), pg_relation_size('TABLE'), pg_relation_size('TABLE_pkey')
FROM TABLE
"""


@dataclass(frozen=True)
class Loaded:
    """Two databases of one server: one that the driver has loaded, and the original."""

    server: RealServer
    ours: str
    theirs: str

    def answers(self, sql: str) -> tuple[Rows, Rows]:
        """Return the answers of both databases."""
        return self.server.execute(sql, self.ours), self.server.execute(sql, self.theirs)


@pytest.fixture(scope="module")
def pgbench_tables(pg18: RealServer) -> Iterator[Loaded]:
    with loaded_by_driver(pg18, "pgbench") as loaded:
        Programs(pg18).pgbench("--initialize", "--quiet", database=loaded.theirs)
        yield loaded


@pytest.fixture(scope="module")
def sysbench_tables(pg18: RealServer) -> Iterator[Loaded]:
    with loaded_by_driver(pg18, "sysbench") as loaded:
        size = ("--tables=2", f"--table-size={ROWS}")
        Programs(pg18).sysbench("oltp_common", *size, "prepare", database=loaded.theirs)
        yield loaded


@contextmanager
def loaded_by_driver(server: RealServer, origin: str) -> Iterator[Loaded]:
    """Provide two databases; the driver has loaded the first, the second is empty."""
    loaded = Loaded(server, f"{origin}_driver", f"{origin}_original")
    for database in (loaded.ours, loaded.theirs):
        server.execute(f"CREATE DATABASE {database}")
    try:
        load(Programs(server), origin, loaded.ours)
        yield loaded
    finally:
        for database in (loaded.ours, loaded.theirs):
            server.execute(f"DROP DATABASE {database}")


@pytest.mark.parametrize("part", SCHEMA)
@pytest.mark.parametrize(
    "fixture", ["pgbench_tables", pytest.param("sysbench_tables", marks=pytest.mark.sysbench)]
)
def test_loaded_tables_have_the_same_schema(request: pytest.FixtureRequest, fixture: str, part: str) -> None:
    loaded: Loaded = request.getfixturevalue(fixture)
    ours, theirs = loaded.answers(SCHEMA[part])
    assert theirs or (fixture, part) == ("pgbench_tables", "sequences")  # pgbench has none
    assert ours == theirs


@pytest.mark.parametrize(
    ("table", "rows"),
    [("pgbench_accounts", 100_000), ("pgbench_tellers", 10), ("pgbench_branches", 1), ("pgbench_history", 0)],
)
def test_pgbench_rows_are_equal_and_lie_in_the_same_places(
    pgbench_tables: Loaded, table: str, rows: int
) -> None:
    ours, theirs = pgbench_tables.answers(PGBENCH_CONTENT.replace("TABLE", table))
    assert theirs[0][0] == rows
    assert ours == theirs


@pytest.mark.sysbench
@pytest.mark.parametrize("table", ["sbtest1", "sbtest2"])
def test_sysbench_rows_are_equal_but_for_what_is_drawn(sysbench_tables: Loaded, table: str) -> None:
    ours, theirs = sysbench_tables.answers(SYSBENCH_CONTENT.replace("TABLE", table))
    assert theirs[0][0] == ROWS
    assert ours == theirs
