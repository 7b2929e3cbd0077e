"""The driver and the programs that its workloads come from ask a server the same things.

On one PostgreSQL 18, pgdyno-driver and then sysbench or pgbench run the same number of transactions. What the
server saw is compared: ``pg_stat_statements`` (texts, query ids, calls, rows), its log (order, parameters)
and the commits that it counted. What one program says is the expected value for the other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fix_servers import RealServer, running_server, wait_until
from tests.integration.load_programs import IDS, PGBENCH, PS_MODES, RUNS, Case, Programs, load

pytestmark = pytest.mark.server

TRANSACTIONS = 200
CONFIGURATION = """
shared_preload_libraries = 'pg_stat_statements'
pg_stat_statements.track_planning = off
log_line_prefix = ''
autovacuum = off
"""
"""Autovacuum's workers commit in the same database, whose commits are counted."""
SYSBENCH = (
    "read-only",
    "read-write",
    "write-only",
    "point-select",
    "update-index",
    "update-non-index",
    "insert",
    "delete",
)

STATEMENTS = """
SELECT queryid, query, calls, rows FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
WHERE d.datname = 'driven'
"""
COMMITS = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'driven'"
CLIENTS = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'driven'"

RESTORATION = (
    "DELETE FROM TABLE WHERE id > 10000",
    """INSERT INTO TABLE (id, k, c) SELECT id, id, id FROM generate_series(1, 10000) id
       ON CONFLICT (id) DO UPDATE SET k = excluded.k WHERE TABLE.k <> excluded.k""",
)

# What the programs ask once before they begin: the driver whether another run is on the same database,
# pgbench for the scale and for partitions.
PREPARATION = re.compile(
    r"SELECT pg_try_advisory_lock\(|select count\(\*\) from pgbench_branches$|select o\.n, p\.partstrat"
)


@dataclass(frozen=True)
class Statement:
    """A row of ``pg_stat_statements``."""

    query_id: int
    text: str
    calls: int
    rows: int

    @property
    def of_any_table(self) -> str:
        """The text without the number of sysbench's table, which is drawn at random."""
        return re.sub(r"sbtest\d+", "sbtest#", self.text)


@pytest.fixture(scope="module")
def programs(pg18_bin: Path) -> Iterator[Programs]:
    with running_server(pg18_bin, CONFIGURATION) as server:
        programs = Programs(server)
        server.execute("CREATE EXTENSION pg_stat_statements")
        server.execute(f"CREATE DATABASE {RUNS}")
        load(programs, "sysbench", RUNS)
        load(programs, "pgbench", RUNS)
        yield programs


def restore(server: RealServer) -> None:
    """Undo what other runs have done to the rows that sysbench's scripts may meet.

    Every key ``k`` is that of one row, so that a list of keys returns as many rows as it has different ones.
    """
    for table in ("sbtest1", "sbtest2"):
        for sql in RESTORATION:
            server.execute(sql.replace("TABLE", table), RUNS)


def seen_by_server(programs: Programs) -> list[Statement]:
    """Return what the clients have asked since the last reset, once all have gone."""
    server = programs.server
    wait_until(lambda: server.execute(CLIENTS) == [(0,)])
    found = [Statement(*row) for row in server.execute(STATEMENTS)]
    return [statement for statement in found if not PREPARATION.match(statement.text)]


def both(programs: Programs, case: Case) -> tuple[list[Statement], list[Statement]]:
    """Return what the server saw of the driver, and of the original."""
    seen = []
    for run in (case.drive, case.run_original):
        restore(programs.server)
        programs.server.execute("SELECT pg_stat_statements_reset()")
        run(programs, TRANSACTIONS)
        seen.append(seen_by_server(programs))
    return seen[0], seen[1]


def mix(statements: list[Statement]) -> dict[str, tuple[float, float]]:
    """Return calls per transaction and rows per call, by text; the tables of sysbench together."""
    calls: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    for statement in statements:
        calls[statement.of_any_table] += statement.calls
        rows[statement.of_any_table] += statement.rows
    return {text: (count / TRANSACTIONS, rows[text] / count) for text, count in calls.items()}


def identities(statements: list[Statement]) -> set[tuple[int, str]]:
    return {(statement.query_id, statement.text) for statement in statements}


# ``delete`` finds a row once only. Of a single id, both programs delete it with the first call per table.
CASES = [
    *(Case(f"sysbench-{name}", tables=2, ids=1 if name == "delete" else IDS) for name in SYSBENCH),
    Case("sysbench-select-random-ranges"),
    *(Case(f"pgbench-{name}") for name in PGBENCH),
]


@pytest.mark.parametrize("case", [case.parameter for case in CASES])
def test_statements_have_the_same_texts_ids_calls_and_rows(programs: Programs, case: Case) -> None:
    ours, theirs = both(programs, case)
    assert identities(ours) == identities(theirs)
    assert mix(ours) == mix(theirs)


@pytest.mark.sysbench
def test_random_points_have_the_same_calls_and_rows_up_to_keys_drawn_twice(programs: Programs) -> None:
    ours, theirs = both(programs, Case("sysbench-select-random-points"))
    assert identities(ours) == identities(theirs)
    for (statement,) in (ours, theirs):
        assert statement.calls == TRANSACTIONS
        # Of 10 keys from 0 to 9901, where key 0 has no row: 45 pairs are equal and 10 keys are 0 with
        # probability 1/9902 each, 1.1 rows of 2000 on average. Poisson: 13 or more once in 10^10 runs.
        assert 10 * TRANSACTIONS - 12 <= statement.rows <= 10 * TRANSACTIONS


@pytest.mark.sysbench
def test_the_point_reads_of_a_transaction_are_from_one_table(programs: Programs) -> None:
    for statements in both(programs, Case("sysbench-read-only", tables=2)):
        points = {s.text: s.calls for s in statements if s.text.endswith("WHERE id=$1")}
        assert len(points) == 2
        assert all(calls % 10 == 0 for calls in points.values()), points


def logged(programs: Programs, case: Case, *, is_driven: bool) -> list[str]:
    """Return the statements of three transactions as the server logs them, with parameters, in order.

    PostgreSQL 18 does not count every BEGIN and COMMIT that was prepared; its log has them all.
    """
    server = programs.server
    restore(server)
    start = server.log_file.stat().st_size
    run = case.drive if is_driven else case.run_original
    run(programs, 3, options="-c log_statement=all")
    wait_until(lambda: server.execute(CLIENTS) == [(0,)])
    text = server.log_file.read_bytes()[start:].decode()
    text = re.sub(r"^LOG:  execute [^:]+: ", "LOG:  execute: ", text, flags=re.MULTILINE)
    text = re.sub(r"\d+(-\d+)+", lambda found: re.sub(r"\d", "#", found[0]), text)  # sysbench's c and pad
    entries = re.split(r"^(?:LOG|DETAIL):  ", text, flags=re.MULTILINE)
    return [entry for entry in entries if entry and not PREPARATION.match(entry.partition(": ")[2])]


# Of a single id, all of sysbench's numbers are determined; only the digits of its texts are random.
DETERMINED = [Case(f"sysbench-{name}", ids=1, mode=mode) for name in SYSBENCH for mode in PS_MODES]


@pytest.mark.parametrize("case", [case.parameter for case in DETERMINED])
def test_statements_have_the_same_order_and_parameters(programs: Programs, case: Case) -> None:
    theirs = logged(programs, case, is_driven=False)
    assert theirs
    assert logged(programs, case, is_driven=True) == theirs


RANDOM = [
    Case(f"pgbench-{name}", mode=mode) for name in PGBENCH for mode in ("prepared", "extended", "simple")
]


@pytest.mark.parametrize("case", [case.parameter for case in RANDOM])
def test_statements_have_the_same_order_and_random_numbers_in_the_same_places(
    programs: Programs, case: Case
) -> None:
    theirs = [without_numbers(entry) for entry in logged(programs, case, is_driven=False)]
    ours = [without_numbers(entry) for entry in logged(programs, case, is_driven=True)]
    assert theirs
    assert ours == theirs


def without_numbers(entry: str) -> str:
    """Replace numbers, but not the names of parameters (``$1``)."""
    return re.sub(r"(?<![$\d])-?\d+", "#", entry)


COMMITTED = [Case("sysbench-read-write"), Case("sysbench-point-select"), Case("pgbench-tpcb")]


@pytest.mark.parametrize("case", [case.parameter for case in COMMITTED])
def test_a_transaction_is_one_commit(programs: Programs, case: Case) -> None:
    """Connecting and preparing are commits, too; they are as many whatever the number of transactions."""
    assert commits_of_200(programs, case, is_driven=False) == TRANSACTIONS
    assert commits_of_200(programs, case, is_driven=True) == TRANSACTIONS


def commits_of_200(programs: Programs, case: Case, *, is_driven: bool) -> int:
    server = programs.server
    restore(server)
    counts = []
    for count in (1, 1 + TRANSACTIONS):
        wait_until(
            lambda: server.execute(CLIENTS) == [(0,)]
        )  # what was restored counts when its session ends
        before = server.execute(COMMITS)[0][0]
        (case.drive if is_driven else case.run_original)(programs, count)
        wait_until(lambda: server.execute(CLIENTS) == [(0,)])
        counts.append(server.execute(COMMITS)[0][0] - before)
    return int(counts[1] - counts[0])
