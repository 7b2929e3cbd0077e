"""Constants of logged statements: taken out as real servers do it, and replayed with their types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fix_captured import replay_on_a_copy
from tests.fix_logging import SETTINGS, capture, log_files, prepare, set_logging
from tests.fix_servers import RealServer, running_server

from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.workload.capture.literals import parameterised
from pgdyno.workload.capture.statements import as_counted
from pgdyno.workload.capture.syntax import shared

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    """PostgreSQL 18 that logs, with a database of pgbench."""
    with running_server(pg18_bin, SETTINGS) as started:
        prepare(started)
        yield started


_STATEMENTS = (
    "SELECT -1, a - 1, 'x' || b FROM t WHERE a IN (1, 2, 3) AND b IS NOT NULL AND c = true LIMIT 10 OFFSET 2",
    "SELECT a, count(*) FROM t GROUP BY 1 HAVING count(*) > 5 ORDER BY 2 DESC, 1",
    "INSERT INTO t (a, b, c) VALUES (7, NULL, false), (8, E'it\\'s', true)",
    "UPDATE t SET a = a + -5, b = $$text$$ WHERE a = 70000 AND b LIKE 'x%'",
    "SELECT a::numeric(10, 2), b::varchar(5) FROM t WHERE a > 1.5e3 AND b = 'x'::text",
    "DELETE FROM t WHERE a BETWEEN 100 AND 200 OR a = ANY (ARRAY[1, 2])",
    "SELECT CASE WHEN a > -5 THEN 'low' ELSE 'high' END FROM t WHERE b COLLATE \"C\" > 'm'",
    "SELECT extract(epoch from now()), date'2026-01-01' - 1, now() - interval '1' day, time(3) '10:00'",
    "SELECT timestamp with time zone '2026-01-01' AT TIME ZONE 'UTC', varchar(3) 'x', mood 'ok' FROM t",
    "SELECT a % 10, count(*) FROM t GROUP BY a % 10 ORDER BY a % 10",
    "SELECT nextval('ids'), set_config('app.tenant', '5', false), current_setting('app.tenant')",
)


@pytest.mark.parametrize("fixture", ["pg18_bin", "pg15_bin"])
def test_constants_are_taken_out_as_the_server_does(fixture: str, request: pytest.FixtureRequest) -> None:
    with running_server(request.getfixturevalue(fixture), SETTINGS) as server:
        server.execute("CREATE EXTENSION pg_stat_statements")
        server.execute("CREATE TABLE t (a integer, b text, c boolean)")
        server.execute("CREATE TYPE mood AS ENUM ('ok')")
        server.execute("CREATE SEQUENCE ids")
        for sql in _STATEMENTS:
            server.execute(sql)
        shown = {as_counted(str(text)) for (text,) in server.execute("SELECT query FROM pg_stat_statements")}
    ours = {as_counted(shared(parameterised(sql)).sql) for sql in _STATEMENTS}
    assert ours - shown == set(), shown


def capture_statements(server: RealServer, file: Path, *statements: str) -> CapturedWorkload:
    """The workload of statements that are sent to the bank as they are."""
    before = set_logging(server, "jsonlog", log_statement="all")
    for sql in statements:
        server.execute(sql, "bank")
    set_logging(server, "jsonlog", log_statement="none")
    logs = [one for one in log_files(server, "jsonlog") if one not in before]
    return capture(server, "bank", file, logs)


def test_a_statement_that_needs_the_types_of_its_constants_is_replayed_with_them(
    server: RealServer, tmp_path: Path
) -> None:
    sql = "SELECT count(*), 1 + 2 FROM generate_series(1, 10)"
    [one] = capture_statements(server, tmp_path / "bank.toml", sql).statements
    assert one.sql == (
        "SELECT count(*), $1::integer + $2::integer FROM generate_series($3::integer, $4::integer)"
    )


def test_numbers_stay_numbers_where_a_text_would_call_another_function(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    server.execute("CREATE TABLE notes (code text, doc jsonb)", "bank")
    server.execute("INSERT INTO notes VALUES ('abcdef', '{\"items\": [7]}'), ('b', '{}')", "bank")
    file = tmp_path / "bank.toml"
    workload = capture_statements(
        server,
        file,
        "SELECT substring(code from 1 for 3) FROM notes",
        "SELECT doc->'items'->0 FROM notes",
        "UPDATE notes SET code = 5 WHERE code = 'b'",
    )
    assert {one.sql for one in workload.statements} == {
        "SELECT substring(code from $1::integer for $2::integer) FROM notes",
        "SELECT doc->$1->$2::integer FROM notes",
        "UPDATE notes SET code = $1 WHERE code = $2",
    }
    assert replay_on_a_copy(server, "bank", file, home)["replay"]["run"]["failures"] == []
