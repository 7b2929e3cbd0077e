"""Databases in SQL_ASCII, with bytes that are not UTF-8: captured, copied in each way, and replayed on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.fix_copies import bench_briefly, sample, sampled, workload_file
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, running_server
from tests.integration.workload.test_scratch_copy import opened

from pgdyno.model.experiments.captured import ColumnValue
from pgdyno.store.workload_file import read_workload_file

pytestmark = pytest.mark.server
_SETTINGS = "shared_preload_libraries = 'pg_stat_statements'\nautovacuum = off\n"
# Names of cafés: a third each in ASCII, in UTF-8, and in LATIN1.
_CAFES = rb"""
CREATE TABLE cafes (id int PRIMARY KEY, kind text NOT NULL, name text NOT NULL);
INSERT INTO cafes
    SELECT n, (ARRAY['bar', E'caf\xc3\xa9', E'caf\xe9'])[1 + n % 3],
           (ARRAY['bar ', E'caf\xc3\xa9 ', E'caf\xe9 '])[1 + n % 3] || n
    FROM generate_series(1, 3000) n;
ANALYZE;
"""
# Each references another name, by keys with a backslash and a quote, too.
_KEYS = rb"""
CREATE TABLE kinds (name text PRIMARY KEY, parent text REFERENCES kinds, CHECK (parent <> name));
INSERT INTO kinds (name)
    SELECT (ARRAY[E'it\'s \\ ', E'caf\xc3\xa9 ', E'caf\xe9 '])[1 + n % 3] || n
    FROM generate_series(1, 3000) n;
WITH numbered AS (SELECT name, lead(name, 700) OVER (ORDER BY md5(name)) AS other FROM kinds)
UPDATE kinds SET parent = other FROM numbered WHERE numbered.name = kinds.name;
ANALYZE;
"""
_LOST = b"""
SELECT count(*) FROM kinds k
WHERE parent IS NOT NULL AND NOT EXISTS (SELECT FROM kinds p WHERE p.name = k.parent)
"""
_READABLE = b"SELECT name FROM cafes WHERE id = %s"
_UNREADABLE = b'SELECT kind AS "caf\xe9" FROM cafes WHERE id = %s'
_KINDS = """
SELECT convert_to(kind, 'SQL_ASCII'), count(*) FROM cafes GROUP BY kind ORDER BY 1
"""


@pytest.fixture(scope="module", params=["pg15_bin", "pg18_bin"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    """A server with a database without an encoding, and one in LATIN1."""
    with running_server(request.getfixturevalue(request.param), _SETTINGS) as started:
        started.execute("CREATE ROLE reader LOGIN IN ROLE pg_read_all_data, pg_monitor")
        for name, encoding in (("bytes", "SQL_ASCII"), ("latin", "LATIN1"), ("plain", "UTF8")):
            started.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING {encoding} LOCALE 'C'")
            started.execute("CREATE EXTENSION pg_stat_statements", name)
        with psycopg.connect(started.dsn_for("postgres", "bytes"), autocommit=True) as connection:
            connection.execute(_CAFES)
        yield started


@contextmanager
def visits(server: RealServer) -> Iterator[None]:
    """Issue statements of both kinds in a thread, as a client without an encoding does."""
    is_over = threading.Event()

    def work() -> None:
        with psycopg.connect(server.dsn_for("postgres", "bytes"), autocommit=True) as connection:
            while not is_over.is_set():
                for query in (_READABLE, _UNREADABLE):
                    connection.execute(query, (7,))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_statements_with_other_bytes_are_left_out(server: RealServer, tmp_path: Path, home: Path) -> None:
    file, dsn = tmp_path / "bytes.toml", server.dsn_for("reader", "bytes")
    with visits(server):
        done = pgdyno("workload", "capture", "--dsn", dsn, "--for", "2s", str(file))
    assert done.returncode == 0, done.stderr
    captured = read_workload_file(file)
    assert [one.sql for one in captured.statements] == ["SELECT name FROM cafes WHERE id = $1"]
    reasons = {one.why for one in captured.omitted if one.sql.startswith("(query id")}
    assert reasons == {"the server no longer has its text, or it is not UTF-8"}


@pytest.mark.parametrize("way", [(), ("--sample", "--share", "0.5")])
def test_rows_are_copied_byte_by_byte(
    server: RealServer, way: tuple[str, ...], tmp_path: Path, home: Path
) -> None:
    file = workload_file(server, "bytes", tmp_path)
    dsn = server.dsn_for("reader", "bytes")
    done = pgdyno("workload", "copy", str(file), "--dsn", dsn, *way, PGDYNO_HOME=str(home))
    assert done.returncode == 0, done.stderr
    with opened(server, file.with_suffix(".dump")) as copy:
        kinds = dict(copy.execute(_KINDS.encode()).fetchall())
        encoding = copy.execute("SELECT getdatabaseencoding()").fetchone()
    assert encoding == ("SQL_ASCII",)
    assert list(kinds) == [b"bar", b"caf\xc3\xa9", b"caf\xe9"]
    assert [count == 1000 if way == () else 300 < count < 700 for count in kinds.values()] == [True] * 3


def test_rows_that_others_reference_by_bytes_are_added(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    server.execute("CREATE DATABASE kinds TEMPLATE template0 ENCODING SQL_ASCII LOCALE 'C'")
    with psycopg.connect(server.dsn_for("postgres", "kinds"), autocommit=True) as connection:
        connection.execute(_KEYS)
    done = sampled(sample(server, "kinds", workload_file(server, "kinds", tmp_path), home, "--share", "0.2"))
    with opened(server, Path(done["dump"])) as copy:
        query = b"SELECT count(*), count(*) FILTER (WHERE name LIKE E'caf\\xe9%') FROM kinds"
        [[rows, cafes]] = copy.execute(query).fetchall()
        [[lost]] = copy.execute(_LOST).fetchall()
    assert 400 < rows < 3000
    assert cafes > 100
    assert lost == 0


def test_rows_are_generated_from_statistics_of_bytes(server: RealServer, tmp_path: Path, home: Path) -> None:
    file = workload_file(server, "bytes", tmp_path)
    dsn = server.dsn_for("reader", "bytes")
    done = pgdyno("workload", "copy", str(file), "--dsn", dsn, "--synthetic", PGDYNO_HOME=str(home))
    assert done.returncode == 0, done.stderr
    with opened(server, file.with_suffix(".dump")) as copy:
        kinds = copy.execute(_KINDS.encode()).fetchall()
    assert [count for _, count in kinds] == [1000] * 3


def test_a_copy_is_loaded_and_its_rows_are_returned(server: RealServer, tmp_path: Path, home: Path) -> None:
    """Of three names, one is not UTF-8: a third of the calls would fail if the server had to convert it."""
    by_id = "SELECT name, pg_sleep(0.01) FROM cafes WHERE id = $1"
    file = workload_file(server, "bytes", tmp_path, by_id, (ColumnValue("public.cafes.id"),))
    dsn = server.dsn_for("reader", "bytes")
    copied = pgdyno("workload", "copy", str(file), "--dsn", dsn, PGDYNO_HOME=str(home))
    assert copied.returncode == 0, copied.stderr
    measured = bench_briefly(server, file, home)
    assert measured.returncode == 0, measured.stderr
    assert "22021" not in measured.stdout + measured.stderr


def test_values_that_are_not_utf8_are_not_drawn(server: RealServer, tmp_path: Path, home: Path) -> None:
    by_kind = "SELECT count(*) FROM cafes WHERE kind = $1"
    file = workload_file(server, "bytes", tmp_path, by_kind, (ColumnValue("public.cafes.kind"),))
    server.execute("DROP ROLE IF EXISTS app")
    server.execute("CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_monitor")
    arguments = ("--dsn", server.dsn_for("app", "bytes"), "--allow-load", "--is-copy", "--for", "1s")
    done = pgdyno("workload", "replay", str(file), *arguments, PGDYNO_HOME=str(home))
    assert done.returncode == 0, done.stderr
    assert "failed: none" in done.stdout
    assert "public.cafes.kind: values that are not UTF-8 are not drawn" in done.stdout


def test_texts_of_another_database_that_cannot_be_converted_are_named(
    server: RealServer, tmp_path: Path
) -> None:
    """A euro sign is in UTF-8, and not in LATIN1: the server's view fails there as a whole."""
    with psycopg.connect(f"{server.dsn_for('postgres', 'plain')} client_encoding=UTF8") as connection:
        connection.execute('SELECT 1 AS "€"'.encode())
    server.execute("SELECT 2 AS two", "latin")
    dsn = server.dsn_for("reader", "latin")
    try:
        done = pgdyno("workload", "capture", "--dsn", dsn, "--for", "1s", str(tmp_path / "latin.toml"))
    finally:
        server.execute("SELECT pg_stat_statements_reset()", "latin")
    assert done.returncode == 1
    assert "the texts of pg_stat_statements cannot be read in this database" in done.stderr
    assert 'in encoding "UTF8" has no equivalent in encoding "LATIN1"' in done.stderr
    assert "capture the workload from a log (--log)" in done.stderr
