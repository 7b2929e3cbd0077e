"""Copies have the encoding and locale of their original: texts sort and match as there, by the same plans."""

from __future__ import annotations

import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.fix_copies import bench_briefly, workload_file
from tests.fix_home import Run, pgdyno
from tests.fix_servers import RealServer, running_server

from pgdyno.postgres.process.dump import restore_dump
from pgdyno.postgres.process.installation import installation_at
from pgdyno.postgres.process.instance import DATABASE
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.workload.scratch_copy import scratch_server

pytestmark = pytest.mark.server
_PEOPLE = """
CREATE TABLE people (
    id int PRIMARY KEY,
    name text NOT NULL CHECK (name ~ '^[[:alpha:] ]+$'),
    shown text GENERATED ALWAYS AS (upper(name)) STORED
);
INSERT INTO people (id, name)
    SELECT n, CASE WHEN n % 2 = 0 THEN 'münchen ' ELSE 'Zürich ' END
        || translate(n::text, '0123456789', 'abcdefghij')
    FROM generate_series(1, 20000) n;
CREATE INDEX ON people (name);
ANALYZE;
"""
_LOCALE = """
SELECT (SELECT jsonb_object_agg(key, value) FROM jsonb_each(to_jsonb(d))
        WHERE key IN ('encoding', 'datlocprovider', 'datcollate', 'datctype', 'daticulocale', 'datlocale',
                      'daticurules'))
FROM pg_database d WHERE datname = current_database()
"""
_WAYS = {"whole": (), "sample": ("--sample", "--share", "0.2"), "synthetic": ("--synthetic",)}
_ICU = "LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C' ENCODING UTF8"
_BUILTIN = "LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C' ENCODING UTF8"


@pytest.fixture(scope="module")
def old(pg15_bin: Path) -> Iterator[RealServer]:
    """A server of Debian's, which has ICU, with databases in several locales."""
    with _originals(pg15_bin, icu=_ICU, latin="ENCODING LATIN1 LOCALE 'C'") as server:
        yield server


@pytest.fixture(scope="module")
def new(pg18_bin: Path) -> Iterator[RealServer]:
    """A server of the wheel's, which has no ICU."""
    with _originals(pg18_bin, builtin=_BUILTIN, latin="ENCODING LATIN1 LOCALE 'C'") as server:
        yield server


@contextmanager
def _originals(bin_directory: Path, **databases: str) -> Iterator[RealServer]:
    with running_server(bin_directory) as server:
        server.execute("CREATE ROLE reader LOGIN IN ROLE pg_read_all_data")
        server.execute("ALTER ROLE reader SET client_encoding = 'LATIN1'")
        for name, locale in databases.items():
            server.execute(f"CREATE DATABASE {name} TEMPLATE template0 {locale}")
        yield server


def make(server: RealServer, database: str, schema: str) -> None:
    """Make tables in a database, by statements in UTF-8."""
    way = f"{server.dsn_for('postgres', database)} client_encoding=UTF8"
    with psycopg.connect(way, autocommit=True) as connection:
        connection.execute(schema.encode())


def copied(server: RealServer, database: str, home: Path, directory: Path, *options: str) -> Path:
    """Copy a database; return the dump."""
    file = workload_file(server, database, directory)
    dsn = server.dsn_for("reader", database)
    done = pgdyno("workload", "copy", str(file), "--dsn", dsn, *options, PGDYNO_HOME=str(home))
    assert done.returncode == 0, done.stderr
    return file.with_suffix(".dump")


@contextmanager
def opened(server: RealServer, dump: Path) -> Iterator[psycopg.Connection[Any]]:
    """Restore a copy as measurements do, and connect to it."""
    place = workspace()
    installation = installation_at(server.bin_directory, place.account)
    with (
        place.measuring(),
        place.scratch() as scratch,
        scratch_server(place, scratch, installation, dump) as restored,
    ):
        restore_dump(restored, DATABASE, dump)
        with restored.connect(DATABASE) as connection:
            connection.execute("ANALYZE")
            yield connection


def plan_of(connection: psycopg.Connection[Any], query: str) -> str:
    """Return the name of a plan's scan."""
    [[[document]]] = connection.execute(f"EXPLAIN (FORMAT JSON) {query}".encode()).fetchall()
    plan: Mapping[str, Any] = document["Plan"]
    while "Plans" in plan and "Scan" not in plan["Node Type"]:
        [plan] = plan["Plans"]
    return str(plan["Node Type"])


@pytest.mark.parametrize("way", _WAYS)
def test_an_index_in_the_order_of_icu_serves_no_pattern(
    old: RealServer, way: str, tmp_path: Path, home: Path
) -> None:
    old.execute("DROP TABLE IF EXISTS people", "icu")
    make(old, "icu", _PEOPLE)
    pattern = "SELECT id FROM people WHERE name LIKE 'Zürich bc%'"
    with psycopg.connect(old.dsn_for("postgres", "icu")) as original:
        assert plan_of(original, pattern) == "Seq Scan"
        [[locale]] = original.execute(_LOCALE.encode()).fetchall()
    dump = copied(old, "icu", home, tmp_path, *_WAYS[way])
    with opened(old, dump) as copy:
        assert copy.execute(_LOCALE.encode()).fetchall() == [(locale,)]
        assert locale["daticulocale"] == "en-US"
        assert plan_of(copy, pattern) == "Seq Scan"
        # "münchen" is before "Zürich" in English, and after it in bytes.
        assert copy.execute("SELECT 'münchen' < 'Zürich', upper('ü') = 'Ü'").fetchone() == (True, True)
        names = copy.execute("SELECT name, shown FROM people ORDER BY name LIMIT 1").fetchone()
    if way != "synthetic":
        assert names is not None
        assert names[0].startswith("münchen ")
        assert names[1] == names[0].upper()


@pytest.mark.parametrize("way", _WAYS)
def test_letters_of_the_builtin_provider_are_letters(
    new: RealServer, way: str, tmp_path: Path, home: Path
) -> None:
    new.execute("DROP TABLE IF EXISTS people", "builtin")
    make(new, "builtin", _PEOPLE)
    dump = copied(new, "builtin", home, tmp_path, *_WAYS[way])
    with opened(new, dump) as copy:
        [[locale]] = copy.execute(_LOCALE.encode()).fetchall()
        assert (locale["datlocprovider"], locale["datlocale"]) == ("b", "C.UTF-8")
        assert copy.execute("SELECT 'ü' ~ '^[[:alpha:]]$'").fetchone() == (True,)
        pattern = "SELECT id FROM people WHERE name LIKE 'Zürich bc%'"
        assert plan_of(copy, pattern) in {"Index Scan", "Bitmap Heap Scan"}  # it sorts by code points
        [[wrong]] = copy.execute("SELECT count(*) FROM people WHERE shown <> upper(name)").fetchall()
        assert wrong == 0


@pytest.mark.parametrize("fixture", ["old", "new"])
def test_order_and_types_of_characters_may_be_of_two_locales(
    request: pytest.FixtureRequest, fixture: str, tmp_path: Path, home: Path
) -> None:
    """The name of the database needs quotes, in the archive, too."""
    server = request.getfixturevalue(fixture)
    server.execute("""CREATE DATABASE "shop-1" TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'""")
    make(server, "shop-1", "CREATE TABLE notes AS SELECT 'ü' AS note; ANALYZE")
    with opened(server, copied(server, "shop-1", home, tmp_path)) as copy:
        [[locale]] = copy.execute(_LOCALE.encode()).fetchall()
        assert (locale["datcollate"], locale["datctype"]) == ("C", "C.UTF-8")
        assert copy.execute("SELECT upper(note) FROM notes").fetchone() == ("Ü",)


@pytest.mark.parametrize("fixture", ["old", "new"])
@pytest.mark.parametrize("way", ["whole", "sample"])
def test_rows_in_latin1_are_copied_in_latin1(
    request: pytest.FixtureRequest, fixture: str, way: str, tmp_path: Path, home: Path
) -> None:
    server = request.getfixturevalue(fixture)
    server.execute("DROP TABLE IF EXISTS cafes", "latin")
    make(server, "latin", "CREATE TABLE cafes (id int PRIMARY KEY, name text); ANALYZE")
    make(server, "latin", "INSERT INTO cafes SELECT n, 'café ' || n FROM generate_series(1, 3000) n")
    with opened(server, copied(server, "latin", home, tmp_path, *_WAYS[way])) as copy:
        query = "SELECT getdatabaseencoding(), count(*) FROM cafes WHERE name = 'café ' || id"
        [[encoding, rows]] = copy.execute(query.encode()).fetchall()
    assert encoding == "LATIN1"
    assert rows == 3000 if way == "whole" else 300 < rows < 900


def test_an_encoding_of_the_role_loses_no_character(old: RealServer, tmp_path: Path, home: Path) -> None:
    """The role's sessions are in LATIN1, which has no euro sign."""
    old.execute("DROP TABLE IF EXISTS people", "icu")
    make(old, "icu", "DROP TABLE IF EXISTS prices; CREATE TABLE prices AS SELECT '5 €' AS price; ANALYZE")
    for way in ("whole", "synthetic"):
        dump = copied(old, "icu", home, tmp_path, *_WAYS[way], *(("--replace",) if way != "whole" else ()))
        if way == "whole":
            with opened(old, dump) as copy:
                assert copy.execute("SELECT price FROM prices").fetchall() == [("5 €",)]
    old.execute("DROP TABLE prices", "icu")


def test_a_server_without_icu_is_refused(old: RealServer, pg18_bin: Path, tmp_path: Path, home: Path) -> None:
    make(old, "icu", "DROP TABLE IF EXISTS notes; CREATE TABLE notes AS SELECT 'x' AS note; ANALYZE")
    dump = copied(old, "icu", home, tmp_path)
    with running_server(pg18_bin) as other:
        refused = bench_briefly(other, dump.with_suffix(".toml"), home)
    assert refused.returncode == 1
    assert "cannot have a database in the original's locale: icu, ENCODING 'UTF8'" in refused.stderr
    assert "ICU_LOCALE 'en-US'" in refused.stderr
    assert "ICU is not supported in this build" in refused.stderr
    assert "this needs PostgreSQL 15 or later, built with ICU as Debian's packages are" in refused.stderr


def test_a_server_that_is_too_old_for_the_archive_is_refused(
    new: RealServer, old: RealServer, tmp_path: Path, home: Path
) -> None:
    make(new, "builtin", "DROP TABLE IF EXISTS notes; CREATE TABLE notes AS SELECT 'x' AS note; ANALYZE")
    dump = copied(new, "builtin", home, tmp_path)
    refused = bench_briefly(old, dump.with_suffix(".toml"), home)
    assert refused.returncode == 1, refused.stdout
    assert f'"{dump}" cannot be read by {old.bin_directory}/pg_restore' in refused.stderr
    assert "use a server of the same major version as the pg_dump that wrote it" in refused.stderr
    assert "install the client programs of the original's version (postgresql-client-NN)" in refused.stderr


@pytest.fixture(scope="module")
def german(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a locale that the machine does not have."""
    if shutil.which("localedef") is None or not Path("/usr/share/i18n/locales/de_AT").exists():
        pytest.skip("localedef has no sources of locales: apt install locales")
    directory = tmp_path_factory.mktemp("locales")
    for one in (directory, *directory.parents):  # the server runs as another user
        if one.stat().st_mode & stat.S_IXOTH:
            break
        one.chmod(0o755)
    target = directory / "de_AT.iso88591"
    done = subprocess.run(
        ["localedef", "-c", "-i", "de_AT", "-f", "ISO-8859-1", target], capture_output=True, check=False
    )
    assert target.is_dir(), done.stderr
    return directory


@pytest.mark.parametrize("way", ["whole", "synthetic"])
def test_a_missing_locale_of_libc_is_named(
    pg18_bin: Path, german: Path, tmp_path: Path, home: Path, way: str
) -> None:
    with running_server(pg18_bin) as server:
        server.stop()
        server.environment = {"LOCPATH": str(german)}
        server.start()
        server.execute("CREATE ROLE reader LOGIN IN ROLE pg_read_all_data")
        server.execute("CREATE DATABASE wien TEMPLATE template0 ENCODING LATIN1 LOCALE 'de_AT.iso88591'")
        make(server, "wien", "CREATE TABLE streets AS SELECT 'Gürtel' AS name; ANALYZE")
        file = workload_file(server, "wien", tmp_path)
        refused = _copied_and_measured(server, file, home, way)
    assert refused.returncode == 1
    assert "libc, ENCODING 'LATIN1', LOCALE 'de_AT.iso88591'" in refused.stderr
    assert 'invalid LC_COLLATE locale name: "de_AT.iso88591"' in refused.stderr
    assert "dpkg-reconfigure locales (Debian), or dnf install glibc-langpack-de (Red Hat)" in refused.stderr


def _copied_and_measured(server: RealServer, file: Path, home: Path, way: str) -> Run:
    dsn = server.dsn_for("reader", "wien")
    done = pgdyno("workload", "copy", str(file), "--dsn", dsn, *_WAYS[way], PGDYNO_HOME=str(home))
    if way == "synthetic":
        assert not file.with_suffix(".dump").exists()
        return done
    assert done.returncode == 0, done.stderr
    return bench_briefly(server, file, home)
