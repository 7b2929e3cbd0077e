"""Workloads captured from real servers under real load, and replayed on copies of their databases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Event

import psycopg
import pytest
from tests.fix_bank import (
    READING,
    SETTINGS,
    SINGLE,
    WRITING,
    capture,
    initialise,
    repeating,
    transfers,
)
from tests.fix_captured import replay_on_a_copy
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, running_server, wait_until
from tests.shop import buying

from pgdyno.model.experiments.captured import (
    CapturedTransaction,
    CapturedWorkload,
    ColumnValue,
    ReturnedValue,
    SameValue,
)
from pgdyno.store.workload_file import read_workload_file

pytestmark = pytest.mark.server
_PLANTED = (
    "ALTER ROLE app PASSWORD 'planted'",
    "DO $$ BEGIN PERFORM 'planted'; END $$",
    "SET application_name = 'planted'",
    "SELECT /* planted */ count(*) FROM customers",
)
_NESTED = """\
\\set aid random(1, 100000)
\\set name random(1, 1000000000)
BEGIN;
SAVEPOINT s:name;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
SELECT pg_sleep(0.002);
RELEASE SAVEPOINT s:name;
END;
"""
_MERGE = """\
\\set aid random(1, 100000)
MERGE INTO pgbench_accounts a USING (SELECT :aid::int AS aid) n ON a.aid = n.aid
WHEN MATCHED THEN UPDATE SET abalance = a.abalance + :aid
WHEN NOT MATCHED THEN INSERT (aid, bid, abalance) VALUES (n.aid, 1, 0);
"""


@pytest.fixture(scope="module")
def server(each_bin: Path) -> Iterator[RealServer]:
    """A server that counts statements, with a database of pgbench and one of a shop."""
    with running_server(each_bin, SETTINGS) as started:
        for database in ("bank", "shop"):
            started.execute(f"CREATE DATABASE {database}")
            started.execute("CREATE EXTENSION pg_stat_statements", database)
        initialise(started)
        buying.make(started.dsn_for("postgres", "shop"))
        started.execute("CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_write_all_data")
        yield started


@pytest.fixture(scope="module")
def bank_file(server: RealServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a workload that was captured from the bank."""
    file = tmp_path_factory.mktemp("captured") / "bank.toml"
    with transfers(server):
        capture(server, "bank", file)
    return file


def tables_of(one: CapturedTransaction) -> set[str]:
    return {call.statement for call in one.calls if "pgbench" in call.statement}


def block_of(workload: CapturedWorkload) -> CapturedTransaction:
    return next(one for one in workload.transactions if len(one.calls) > 1)


def test_transactions_of_pgbench_are_captured_and_replayed(
    server: RealServer, bank_file: Path, home: Path
) -> None:
    workload = read_workload_file(bank_file)
    assert workload.replayed_share >= 0.99
    block = block_of(workload)
    names = [call.statement for call in block.calls]
    assert (names[0], names[-1]) == ("begin", "commit")
    assert sorted(names[1:-1]) == [
        "insert-pgbench_history", "select", "select-pgbench_accounts", "update-pgbench_accounts",
    ]  # fmt: skip
    # The same account is updated and read; which comes first shows if both were seen at work.
    of_accounts = [call.parameters[-1] for call in block.calls if call.statement.endswith("accounts")]
    assert [type(one) for one in of_accounts] == [ColumnValue, SameValue]
    assert all(call.times == pytest.approx(1, abs=0.1) for call in block.calls)

    found = replay_on_a_copy(server, "bank", bank_file, home)
    assert found["replay"]["run"]["failures"] == []
    by_quantity = found["replay"]["likeness"]["by_quantity"]
    for quantity in ("calls", "rows", "blocks"):
        assert by_quantity[quantity] >= 0.9, found


def test_a_program_of_many_kinds_of_statements_is_captured_and_replayed(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    with buying.load(server.dsn_for("postgres", "shop")):
        for seconds in (6, 12, 24):  # its blocks are short, and other tests run too: few may be seen
            file = tmp_path / f"shop-{seconds}.toml"
            workload = capture(server, "shop", file, seconds=seconds)
            parameters = {call.statement: call.parameters for call in block_of(workload).calls}
            if parameters["insert-orders"][0] == SameValue(1, "insert-carts"):
                break
    assert workload.replayed_share >= 0.9
    assert {one.why for one in workload.omitted} == {"COPY: its rows are not in the server's statistics"}
    # Lines belong to the order that was just inserted, and the order to the customer whose cart it was.
    assert parameters["insert-lines"][0] == ReturnedValue(1, "insert-orders")
    assert parameters["update-orders"][1] == ReturnedValue(1, "insert-orders")
    assert parameters["insert-orders"][0] == SameValue(1, "insert-carts")
    found = replay_on_a_copy(server, "shop", file, home)
    by_quantity = found["replay"]["likeness"]["by_quantity"]
    assert by_quantity["calls"] >= 0.9, found
    assert found["replay"]["run"]["failures"] == []


@pytest.mark.parametrize("protocol", ["simple", "prepared"])
def test_what_was_committed_is_committed_and_what_was_rolled_back_rolled_back(
    server: RealServer, tmp_path: Path, home: Path, protocol: str
) -> None:
    kinds = {
        frozenset({"select-pgbench_accounts"}): "rollback",
        frozenset({"update-pgbench_accounts", "insert-pgbench_history"}): "commit",
    }
    with transfers(server, protocol, (READING, WRITING, READING)):
        for seconds in (6, 12, 24):  # blocks are short, and other tests run too: few may be seen
            file = tmp_path / f"orm-{seconds}.toml"
            workload = capture(server, "bank", file, seconds=seconds)
            ends = {frozenset(tables_of(one)): one.calls[-1].statement for one in workload.transactions}
            if ends == kinds:
                break
    assert ends == kinds
    assert workload.sessions == 2
    assert workload.ended is not None
    assert workload.ended.rolled_back_share == pytest.approx(2 / 3, abs=0.1)
    found = replay_on_a_copy(server, "bank", file, home)
    assert found["replay"]["likeness"]["by_quantity"]["rollbacks"] >= 0.9, found
    before, after = (
        server.execute("SELECT sum(abalance) FROM pgbench_accounts", database)
        for database in ("bank", "bank_copy")
    )
    assert before != after


def test_savepoints_of_an_older_server_are_one_statement_whatever_their_names(
    pg15_bin: Path, tmp_path: Path, home: Path
) -> None:
    with running_server(pg15_bin, SETTINGS) as older:
        older.execute("CREATE DATABASE bank")
        older.execute("CREATE EXTENSION pg_stat_statements", "bank")
        initialise(older)
        older.execute("CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_write_all_data")
        with transfers(older, "simple", (_NESTED,)):
            workload = capture(older, "bank", tmp_path / "nested.toml")
        names = [call.statement for call in block_of(workload).calls]
        # So short a savepoint is often not sampled: the place of a statement within the block is not known.
        assert names[0] == "begin"
        assert sorted(names[1:]) == ["commit", "release", "savepoint", "select", "update-pgbench_accounts"]
        assert names.index("savepoint") < names.index("release")
        assert len(workload.statements) == 6
        found = replay_on_a_copy(older, "bank", tmp_path / "nested.toml", home)
        assert found["replay"]["run"]["failures"] == []
        assert found["replay"]["likeness"]["by_quantity"]["calls"] >= 0.9, found


def test_merge_finds_the_rows_that_it_found(server: RealServer, tmp_path: Path, home: Path) -> None:
    if server.execute("SHOW server_version_num") < [("150000",)]:
        pytest.skip("MERGE is of PostgreSQL 15 and later")
    with transfers(server, "prepared", (_MERGE,)):
        workload = capture(server, "bank", tmp_path / "merge.toml")
    [call] = max(workload.transactions, key=lambda one: one.weight).calls
    assert (call.statement, call.parameters[0]) == (
        "merge-pgbench_accounts",
        ColumnValue("public.pgbench_accounts.aid"),
    )
    found = replay_on_a_copy(server, "bank", tmp_path / "merge.toml", home)
    assert found["replay"]["run"]["failures"] == []
    assert server.execute("SELECT count(*) FROM pgbench_accounts", "bank_copy") == [(100_000,)]


def test_tenants_with_a_schema_each_are_noted_with_their_shares(pg15_bin: Path, tmp_path: Path) -> None:
    is_over = Event()
    with running_server(pg15_bin, SETTINGS) as old, ThreadPoolExecutor(1) as pool:
        old.execute("CREATE EXTENSION pg_stat_statements")
        for schema in ("public", "large", "small"):
            old.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            old.execute(f"CREATE TABLE {schema}.bills (id int PRIMARY KEY)")

        def work() -> None:
            with psycopg.connect(old.dsn_for("postgres"), autocommit=True) as session:
                while not is_over.is_set():
                    for schema in ("large", "large", "large", "small"):
                        session.execute(f"SET search_path = {schema}")
                        session.execute("SELECT id FROM bills WHERE id = %s", (1,))
                        is_over.wait(0.001)

        done = pool.submit(work)
        try:
            workload = capture(old, "postgres", tmp_path / "tenants.toml", seconds=4)
        finally:
            is_over.set()
        done.result()
    [note] = [one for one in workload.notes if "statements with this text" in one]
    found = re.fullmatch(
        r"select-bills: the server counted 2 statements with this text, with ([\d.]+)\s% and ([\d.]+)\s% of "
        r"the calls, perhaps on tables of other schemas; all of them are replayed with search_path = .*",
        note,
    )
    assert found is not None, note
    assert [float(one) for one in found.groups()] == pytest.approx([75, 25], abs=2)


def test_one_client_is_one_session_and_no_blocks(server: RealServer, tmp_path: Path) -> None:
    with transfers(server, "simple", (SINGLE,), clients=1):
        workload = capture(server, "bank", tmp_path / "single.toml")
    assert (workload.sessions, workload.clients) == (1, 1)
    assert [[call.statement for call in one.calls] for one in workload.transactions] == [
        ["select-pgbench_accounts"]
    ]
    assert not any("BEGIN" in note for note in workload.notes)


def test_counts_of_plans_tell_how_statements_were_sent(
    server: RealServer, bank_file: Path, tmp_path: Path
) -> None:
    assert read_workload_file(bank_file).protocol == "prepared"
    file = tmp_path / "bank.toml"
    with transfers(server, "extended"):
        dsn = server.reading_dsn("bank")
        captured = pgdyno("workload", "capture", "--dsn", dsn, "--for", "3s", str(file))
    assert captured.returncode == 0, captured.stderr
    assert read_workload_file(file).protocol == "extended"


def test_the_original_is_not_replayed_on(server: RealServer, bank_file: Path, home: Path) -> None:
    dsn = server.dsn_for("postgres", "bank")
    refused = pgdyno(
        "workload", "replay", str(bank_file), "--dsn", dsn, "--allow-load", PGDYNO_HOME=str(home)
    )
    assert refused.returncode == 4
    assert '"bank" is the database that this workload was captured from' in refused.stderr
    unasked = pgdyno("workload", "replay", str(bank_file), "--dsn", dsn, PGDYNO_HOME=str(home))
    assert "add --allow-load if the database is an expendable copy" in unasked.stderr


def test_a_copy_without_the_tables_is_refused(server: RealServer, bank_file: Path, home: Path) -> None:
    dsn = server.dsn_for("app", "shop")
    refused = pgdyno(
        "workload", "replay", str(bank_file), "--dsn", dsn, "--allow-load", PGDYNO_HOME=str(home)
    )
    assert 'the database "shop" lacks public.pgbench_accounts.aid' in refused.stderr
    assert (
        "a copy has the original's tables: did the schema change since the capture, or is a column"
        in refused.stderr
    )


def test_a_file_has_no_values_of_rows_and_no_constants(server: RealServer, tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    planted = (repeating(server, statement, "shop") for statement in _PLANTED)
    with ExitStack() as stack:
        stack.enter_context(buying.load(server.dsn_for("postgres", "shop")))
        for one in planted:
            stack.enter_context(one)
        workload = capture(server, "shop", file, seconds=3)
    assert buying.SECRET not in file.read_text()
    assert "planted" not in file.read_text()
    assert {"ALTER ROLE …", "DO …", "SET …"} <= {one.sql for one in workload.omitted}


def test_a_superuser_and_a_copy_with_foreign_tables_are_refused(
    server: RealServer, bank_file: Path, home: Path
) -> None:
    server.execute("DROP DATABASE IF EXISTS linked")
    server.execute("CREATE DATABASE linked TEMPLATE bank")
    arguments = ("workload", "replay", str(bank_file), "--allow-load", "--dsn")
    superuser = pgdyno(*arguments, server.dsn_for("postgres", "linked"), PGDYNO_HOME=str(home))
    assert (superuser.returncode, 'role "postgres" is a superuser' in superuser.stderr) == (4, True)
    server.execute("CREATE EXTENSION postgres_fdw", "linked")
    server.execute("CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw", "linked")
    server.execute("CREATE FOREIGN TABLE far (a int) SERVER elsewhere", "linked")
    linked = pgdyno(*arguments, server.dsn_for("app", "linked"), PGDYNO_HOME=str(home))
    assert linked.returncode == 4
    assert "the copy has foreign tables: public.far" in linked.stderr


def test_what_is_missing_is_said(server: RealServer, tmp_path: Path) -> None:
    file = str(tmp_path / "w.toml")
    without = pgdyno("workload", "capture", "--dsn", server.reading_dsn(), "--for", "1s", file)
    assert without.returncode == 1
    assert "the database has no pg_stat_statements: its statements are not counted" in without.stderr
    server.execute("DROP ROLE IF EXISTS visitor")
    server.execute("CREATE ROLE visitor LOGIN")
    closed = pgdyno("workload", "capture", "--dsn", server.dsn_for("visitor", "bank"), "--for", "1s", file)
    assert "the role may not see other roles' statements" in closed.stderr
    idle = pgdyno("workload", "capture", "--dsn", server.reading_dsn("bank"), "--for", "1s", file)
    assert "no replayable activity within 1 s" in idle.stderr
    assert not Path(file).exists()


@pytest.mark.parametrize(
    ("of", "setting", "value", "expected"),
    [
        ("SYSTEM", "compute_query_id", "off", "compute_query_id = off"),
        ("SYSTEM", "pg_stat_statements.track", "none", "pg_stat_statements.track = none"),
        (
            "ROLE postgres",
            "pg_stat_statements.track",
            "none",
            "pg_stat_statements.track = none (role postgres)",
        ),
        ("DATABASE bank", "compute_query_id", "no", "compute_query_id = no (database bank)"),
    ],
)
def test_settings_without_counts_are_named(
    server: RealServer, tmp_path: Path, of: str, setting: str, value: str, expected: str
) -> None:
    server.execute(f"ALTER {of} SET {setting} = '{value}'")
    server.execute("SELECT pg_reload_conf()")
    if of == "SYSTEM":
        wait_until(lambda: server.execute(f"SHOW {setting}", "bank") == [(value,)])
    dsn = server.reading_dsn("bank")
    try:
        with repeating(server, "SELECT count(*) FROM pgbench_branches"):
            found = pgdyno("workload", "capture", "--dsn", dsn, "--for", "2s", str(tmp_path / "w.toml"))
    finally:
        server.execute(f"ALTER {of} RESET {setting}")
        server.execute("SELECT pg_reload_conf()")
    assert found.returncode == 2
    assert f"statements are not counted with {expected}\n" in found.stderr
    assert "HINT:  set compute_query_id = auto and pg_stat_statements.track = top" in found.stderr


def test_sessions_without_counts_are_named(server: RealServer, tmp_path: Path) -> None:
    dsn = server.reading_dsn("bank")
    with psycopg.connect(server.dsn_for("postgres", "bank")) as session:
        session.execute("SET pg_stat_statements.track = 'none'")
        session.execute("SELECT count(*) FROM pgbench_branches")
        found = pgdyno("workload", "capture", "--dsn", dsn, "--for", "1s", str(tmp_path / "w.toml"))
    assert found.returncode == 2
    assert (
        "on average, 1.0 sessions were in transactions, and pg_stat_statements counted none of their "
        "statements" in found.stderr
    )


def test_a_file_that_is_there_is_kept(server: RealServer, tmp_path: Path) -> None:
    file = tmp_path / "w.toml"
    file.write_text("mine")
    dsn = server.dsn_for("postgres", "bank")
    refused = pgdyno("workload", "capture", "--dsn", dsn, "--for", "1s", str(file))
    assert "already exists" in refused.stderr
    assert file.read_text() == "mine"
