"""Workloads captured from real servers under real load, and replayed on copies of their databases."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from tests.fix_captured import replay_on_a_copy
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, as_unprivileged, running_server
from tests.shop import buying

from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedTransaction,
    CapturedWorkload,
    ColumnValue,
    ReturnedValue,
    SameValue,
)
from pgdyno.store.workload_file import read_workload_file

pytestmark = pytest.mark.server

_SETTINGS = (
    "shared_preload_libraries = 'pg_stat_statements'\npg_stat_statements.track_planning = on\n"
    "track_io_timing = off\n"
)
_PLANTED = (
    "ALTER ROLE app PASSWORD 'planted'",
    "DO $$ BEGIN PERFORM 'planted'; END $$",
    "SET application_name = 'planted'",
    "SELECT /* planted */ count(*) FROM customers",
)
_TRANSFER = """\
\\set aid random(1, 100000)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
SELECT pg_sleep(0.002);
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, :delta, now());
END;
"""


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    """A server that counts statements, with a database of pgbench and one of a shop."""
    with running_server(pg18_bin, _SETTINGS) as started:
        for database in ("bank", "shop"):
            started.execute(f"CREATE DATABASE {database}")
            started.execute("CREATE EXTENSION pg_stat_statements", database)
        initialise(started)
        buying.make(started.dsn_for("postgres", "shop"))
        started.execute("CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_write_all_data")
        yield started


def initialise(server: RealServer) -> None:
    """Make pgbench's tables in the bank."""
    place = (f"--host={server.socket_directory}", f"--port={server.port}", "--username=postgres", "bank")
    server.run("pgbench", "--initialize", "--quiet", "--scale=1", *place)


@contextmanager
def transfers(server: RealServer, protocol: str = "prepared") -> Iterator[None]:
    """Two clients of pgbench with a script of their own, for as long as the block lasts."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(_TRANSFER)
        script.flush()
        Path(script.name).chmod(0o644)
        argv = [
            *as_unprivileged(),
            str(server.bin_directory / "pgbench"),
            *(f"--host={server.socket_directory}", f"--port={server.port}", "--username=postgres"),
            *(
                "--client=2",
                "--time=60",
                f"--protocol={protocol}",
                "--no-vacuum",
                f"--file={script.name}",
                "bank",
            ),
        ]
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.terminate()
            process.wait()


def capture(server: RealServer, database: str, file: Path, seconds: int = 6) -> CapturedWorkload:
    dsn = server.dsn_for("postgres", database)
    done = pgdyno("workload", "capture", "--dsn", dsn, "--for", f"{seconds}s", str(file))
    assert done.returncode == 0, done.stderr
    return read_workload_file(file)


@pytest.fixture(scope="module")
def bank_file(server: RealServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a workload that was captured from the bank."""
    file = tmp_path_factory.mktemp("captured") / "bank.toml"
    with transfers(server):
        capture(server, "bank", file)
    return file


def calls_of(workload: CapturedWorkload) -> list[CapturedCall]:
    return [call for one in workload.transactions for call in one.calls]


@contextmanager
def repeating(server: RealServer, statement: str, database: str = "bank") -> Iterator[None]:
    """Run a statement again and again, for as long as the block lasts."""
    is_over = Event()

    def work() -> None:
        while not is_over.wait(0.2):
            server.execute(statement, database)

    thread = Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


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
    assert found["replay"]["run"]["errors"] == {}
    by_quantity = found["replay"]["likeness"]["by_quantity"]
    for quantity in ("calls", "rows", "blocks"):
        assert by_quantity[quantity] >= 0.9, found


def test_a_program_of_many_kinds_of_statements_is_captured_and_replayed(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    file = tmp_path / "shop.toml"
    with buying.load(server.dsn_for("postgres", "shop")):
        workload = capture(server, "shop", file, seconds=12)  # its blocks are short, and other tests run too
    assert workload.replayed_share >= 0.9
    assert {one.why for one in workload.omitted} == {"COPY: its rows are not in the server's statistics"}
    # Lines belong to the order that was just inserted, and the order to the customer whose cart it was.
    parameters = {call.statement: call.parameters for call in block_of(workload).calls}
    assert parameters["insert-lines"][0] == ReturnedValue(1, "insert-orders")
    assert parameters["update-orders"][1] == ReturnedValue(1, "insert-orders")
    assert parameters["insert-orders"][0] == SameValue(1, "insert-carts")
    found = replay_on_a_copy(server, "shop", file, home)
    by_quantity = found["replay"]["likeness"]["by_quantity"]
    assert by_quantity["calls"] >= 0.9, found
    assert found["replay"]["run"]["errors"] == {}


def test_counts_of_plans_tell_how_statements_were_sent(
    server: RealServer, bank_file: Path, tmp_path: Path
) -> None:
    assert read_workload_file(bank_file).protocol == "prepared"
    file = tmp_path / "bank.toml"
    with transfers(server, "extended"):
        dsn = server.dsn_for("postgres", "bank")
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
    assert "add --allow-load if that is a copy that nobody needs" in unasked.stderr


def test_a_copy_without_the_tables_is_refused(server: RealServer, bank_file: Path, home: Path) -> None:
    dsn = server.dsn_for("app", "shop")
    refused = pgdyno(
        "workload", "replay", str(bank_file), "--dsn", dsn, "--allow-load", PGDYNO_HOME=str(home)
    )
    assert 'the database "shop" lacks public.pgbench_accounts.aid' in refused.stderr
    assert (
        "a copy has the tables of the original: has its schema changed since, or is a column"
        in refused.stderr
    )


def test_a_file_has_no_values_of_rows_and_no_constants(server: RealServer, tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    planted = (repeating(server, statement, "shop") for statement in _PLANTED)
    with ExitStack() as stack:
        stack.enter_context(buying.load(server.dsn_for("postgres", "shop")))
        for one in planted:
            stack.enter_context(one)
        workload = capture(server, "shop", file)
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
    assert (superuser.returncode, "the role is a superuser" in superuser.stderr) == (4, True)
    server.execute("CREATE EXTENSION postgres_fdw", "linked")
    server.execute("CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw", "linked")
    server.execute("CREATE FOREIGN TABLE far (a int) SERVER elsewhere", "linked")
    linked = pgdyno(*arguments, server.dsn_for("app", "linked"), PGDYNO_HOME=str(home))
    assert linked.returncode == 4
    assert "the copy has tables of other servers: public.far" in linked.stderr


def test_what_is_missing_is_said(server: RealServer, tmp_path: Path) -> None:
    file = str(tmp_path / "w.toml")
    without = pgdyno("workload", "capture", "--dsn", server.dsn, "--for", "1s", file)
    assert without.returncode == 1
    assert "the database has no pg_stat_statements: nothing counts its statements" in without.stderr
    server.execute("DROP ROLE IF EXISTS visitor")
    server.execute("CREATE ROLE visitor LOGIN")
    closed = pgdyno("workload", "capture", "--dsn", server.dsn_for("visitor", "bank"), "--for", "1s", file)
    assert "the role may not see the statements of others" in closed.stderr
    idle = pgdyno("workload", "capture", "--dsn", server.dsn_for("postgres", "bank"), "--for", "1s", file)
    assert "nothing that can be replayed happened in 1 s" in idle.stderr
    assert not Path(file).exists()


def test_a_file_that_is_there_is_kept(server: RealServer, tmp_path: Path) -> None:
    file = tmp_path / "w.toml"
    file.write_text("mine")
    dsn = server.dsn_for("postgres", "bank")
    refused = pgdyno("workload", "capture", "--dsn", dsn, "--for", "1s", str(file))
    assert "is there already" in refused.stderr
    assert file.read_text() == "mine"


_REACHING_OUT = """
CREATE EXTENSION postgres_fdw;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host 'production');
CREATE USER MAPPING FOR CURRENT_USER SERVER elsewhere OPTIONS (user 'u', password 'planted-in-a-mapping');
CREATE FUNCTION noted() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
CREATE EVENT TRIGGER noted ON ddl_command_end EXECUTE FUNCTION noted();
CREATE PUBLICATION everything FOR ALL TABLES;
CREATE FUNCTION plain(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF current_database() <> 'bank' AND (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        RAISE EXCEPTION 'planted code runs as a superuser';
    END IF;
    RETURN $1;
END $$;
CREATE EXTENSION citext;
CREATE TABLE notes (id integer PRIMARY KEY, body text, kind citext);
INSERT INTO notes SELECT n, 'note ' || n, 'a' FROM generate_series(1, 1000) n;
CREATE INDEX ON notes (plain(body));
CREATE SCHEMA planted;
CREATE FUNCTION planted.act(text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF current_database() <> 'bank' AND
       (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
        RAISE EXCEPTION 'planted code runs as a superuser';
    END IF;
    RETURN $1;
END $$;
CREATE VIEW planted.pg_available_extensions AS SELECT planted.act('x') AS name;
CREATE VIEW planted.pg_class AS SELECT planted.act('x') AS relname;
CREATE FUNCTION planted.set_path() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE pg_catalog.format('ALTER DATABASE %I SET search_path = planted, pg_catalog', current_database());
    RETURN true;
END $$;
CREATE TYPE planted.mood AS ENUM ('good');
CREATE FUNCTION planted.said(planted.mood) RETURNS text LANGUAGE plpgsql AS $$
BEGIN RETURN planted.act('good'); END $$;
CREATE CAST (planted.mood AS text) WITH FUNCTION planted.said(planted.mood);
CREATE TABLE moods (id integer PRIMARY KEY, mood planted.mood, CHECK (planted.set_path()));
INSERT INTO moods VALUES (1, 'good');
CREATE SCHEMA ext;
CREATE EXTENSION hstore SCHEMA ext;
CREATE TABLE pairs (id integer PRIMARY KEY, pair ext.hstore);
"""
_MOODY = "SELECT id FROM public.moods WHERE mood = 'good'"


def test_a_captured_workload_is_measured_on_a_copy_that_reaches_nowhere(
    scratch_pg18: RealServer, tmp_path: Path, home: Path
) -> None:
    server = scratch_pg18
    server.append_configuration(_SETTINGS)
    server.restart()
    server.execute("CREATE DATABASE bank")
    server.execute("CREATE EXTENSION pg_stat_statements", "bank")
    server.execute(_REACHING_OUT, "bank")
    initialise(server)
    file, dsn = tmp_path / "bank.toml", server.dsn_for("postgres", "bank")
    server.execute("ALTER DATABASE bank RESET search_path")
    with transfers(server), repeating(server, _MOODY):
        workload = capture(server, "bank", file)
    assert any(ColumnValue("public.moods.mood") in call.parameters for call in calls_of(workload))

    copied = pgdyno("workload", "copy", str(file), "--dsn", dsn)
    assert copied.returncode == 0, copied.stderr
    dump = tmp_path / "bank.dump"
    assert dump.stat().st_mode & 0o777 == 0o600
    again = pgdyno("workload", "copy", str(file), "--dsn", dsn)
    assert "is there already" in again.stderr

    original = dump.read_bytes()
    dump.unlink()
    synthetic = pgdyno("workload", "copy", str(file), "--dsn", dsn, "--synthetic", PGDYNO_HOME=str(home))
    assert synthetic.returncode == 0, synthetic.stderr
    assert "planted" not in synthetic.stdout  # such as "planted code runs as a superuser"
    assert "the copy is without extension postgres_fdw" in synthetic.stdout
    dump.write_bytes(original)

    measured = pgdyno(
        *("bench", str(file), "--pg-bin", str(server.bin_directory), "--blocks", "1"),
        PGDYNO_HOME=str(home),
        PGDYNO_AS_BOOTED="1",
    )
    assert measured.returncode == 0, measured.stderr
    for kind in ("EVENT TRIGGER", "SERVER", "USER MAPPING", "extension postgres_fdw"):
        assert f"copy is without {kind}" in measured.stderr
    assert "extension citext" not in measured.stderr
    assert "bank, default: " in measured.stdout, measured.stdout
    assert "bank: likeness " in measured.stdout
