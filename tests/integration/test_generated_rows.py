"""Generated rows of partitions and with temporal keys; functions that depend on a search path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fix_copies import (
    PERIODS,
    SCHEMA,
    make_up,
    restored,
    running_originals,
    sample,
    workload_file,
)
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer

pytestmark = pytest.mark.server
_EVENTS = """
CREATE TABLE events (at timestamptz NOT NULL, kind text NOT NULL, code uuid NOT NULL, tags text[])
    PARTITION BY RANGE (at);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
CREATE TABLE events_3 PARTITION OF events FOR VALUES FROM ('2024-03-01') TO ('2024-04-01');
INSERT INTO events
    SELECT timestamptz '2024-01-01' + n * interval '1 hour', (ARRAY['click', 'view', 'buy'])[1 + n % 3],
           md5((n % 3)::text)::uuid, ARRAY['tag ' || n % 2]
    FROM generate_series(0, 1439) n;
INSERT INTO events VALUES ('2024-03-03', 'buy', md5('0')::uuid, NULL);
INSERT INTO events VALUES ('2024-03-04', 'view', md5('1')::uuid, NULL);
ANALYZE;
"""
_ROOMS = f"""
{PERIODS}
CREATE TABLE periods (id int, held datemultirange, PRIMARY KEY (id, held WITHOUT OVERLAPS));
INSERT INTO periods
    SELECT n, datemultirange(daterange('2024-01-05', '2024-01-25')) FROM generate_series(1, 50) n;
"""  # noqa: S608 — constants
_BOOKINGS = """
CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE TABLE bookings (room int, during tstzrange, EXCLUDE USING gist (room WITH =, during WITH &&));
INSERT INTO bookings SELECT room, tstzrange(hour, hour + interval '1 hour')
    FROM generate_series(1, 40) room,
         generate_series(timestamptz '2024-01-01', '2024-01-05 03:00', '1 hour') hour;
CREATE TYPE floatrange AS RANGE (subtype = float8);
CREATE TABLE measured (held floatrange, EXCLUDE USING gist (held WITH &&));
INSERT INTO measured SELECT floatrange(n, n + 1) FROM generate_series(1, 100) n;
CREATE TABLE circles (c circle, EXCLUDE USING gist (c WITH &&));
INSERT INTO circles SELECT circle(point(n * 10, 0), 1) FROM generate_series(1, 100) n;
ANALYZE;
"""
_HELPERS = """
CREATE SCHEMA app;
CREATE FUNCTION app.folded(t text) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT lower(trim(t)) $$;
CREATE FUNCTION app.is_folded(t text) RETURNS bool IMMUTABLE LANGUAGE plpgsql
    AS $$ BEGIN RETURN folded(t) = t; END $$;
ALTER DATABASE {database} SET search_path = app, public;
"""
_CHECKED = "CREATE TABLE app.names (id int PRIMARY KEY, name text CHECK (app.is_folded(name)))"
_GENERATED = (
    "CREATE TABLE app.names (id int PRIMARY KEY, name text, "
    "folded bool GENERATED ALWAYS AS (app.is_folded(name)) STORED)"
)
_INDEXED = (
    "CREATE TABLE app.names (id int PRIMARY KEY, name text); CREATE INDEX by_fold ON app.names "
    "(app.is_folded(name))"
)
_CALLS = "function folded(text) does not exist: PL/pgSQL function app.is_folded(text) line 1"
_HINT = "in the original, write the schemas in the function's body, or set its search_path"


@pytest.fixture(scope="module", params=["pg15_bin", "pg18_bin"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    """A server without databases of its own."""
    with running_originals(request.getfixturevalue(request.param)) as started:
        yield started


def version(server: RealServer) -> int:
    [[number]] = server.execute("SELECT current_setting('server_version_num')::int / 10000")
    return int(number)


def test_equal_texts_of_partitions_are_equal(server: RealServer, tmp_path: Path, home: Path) -> None:
    """Three kinds in three partitions are three kinds; the smallest partition has two rows."""
    server.execute("CREATE DATABASE events")
    server.execute(_EVENTS, "events")
    made = make_up(server, "events", workload_file(server, "events", tmp_path), home)
    database = restored(server, Path(made["dump"]))
    query = "SELECT {0}, count(*), count(DISTINCT tableoid) FROM events GROUP BY 1 ORDER BY 2, 1"
    for column in ("kind", "code"):
        found = server.execute(query.format(column), database)
        assert [(count, partitions) for _, count, partitions in found] == [
            (count, partitions) for _, count, partitions in server.execute(query.format(column), "events")
        ]
        assert len(found) == 3
    tags = "SELECT count(DISTINCT tag) FROM events, unnest(tags) tag"
    assert server.execute(tags, database) == [(2,)]
    of_two = "SELECT count(DISTINCT kind) FROM events_3 WHERE kind IN (SELECT kind FROM events_1)"
    assert server.execute(of_two, database) == [(2,)]
    [[texts]] = server.execute("SELECT string_agg(DISTINCT kind, ' ') FROM events", database)
    assert not {"click", "view", "buy"} & {*str(texts).split()}


def test_temporal_keys_and_exclusion_constraints_hold(server: RealServer, tmp_path: Path, home: Path) -> None:
    server.execute("CREATE DATABASE rooms")
    if version(server) >= 18:
        server.execute(_ROOMS, "rooms")
    server.execute(_BOOKINGS, "rooms")
    made = make_up(server, "rooms", workload_file(server, "rooms", tmp_path), home)
    database = restored(server, Path(made["dump"]))
    originals = {str(one) for (one,) in server.execute(SCHEMA, "rooms")}
    missing = originals - {str(one) for (one,) in server.execute(SCHEMA, database)}
    # Values of circles and of a user's range type are not generated: NULL excludes nothing.
    assert missing == set(), made["notes"]
    if version(server) >= 18:
        assert server.execute("SELECT count(*), count(DISTINCT (id, held)) FROM rooms", database) == [
            (2500, 2500)
        ]
        covered = (
            "SELECT count(*) FROM stays s WHERE NOT EXISTS "
            "(SELECT FROM rooms r WHERE r.id = s.room AND r.held @> s.held)"
        )
        assert server.execute(covered, database) == [(0,)]
    assert server.execute("SELECT count(*), count(DISTINCT (room, during)) FROM bookings", database) == [
        (4000, 4000)
    ]
    assert any(one.startswith("ranges of one day, hour or number") for one in made["notes"])


def _make_names(server: RealServer, name: str, schema: str) -> None:
    server.execute(f"CREATE DATABASE {name}")
    server.execute(_HELPERS.format(database=name), name)
    server.execute(schema, name)
    server.execute("INSERT INTO app.names SELECT n, 'n' || n FROM generate_series(1, 2000) n", name)
    server.execute("ANALYZE app.names (id, name)", name)  # without the index: that fails since 17
    server.execute("GRANT USAGE ON SCHEMA app TO reader", name)


@pytest.mark.parametrize(
    ("name", "schema", "place"),
    [
        ("checked", _CHECKED, "app.names"),
        ("generated", _GENERATED, "app.names"),
        ("indexed", _INDEXED, "by_fold ON app.names"),
    ],
)
def test_a_function_that_needs_a_search_path_is_named(
    server: RealServer, tmp_path: Path, home: Path, name: str, schema: str, place: str
) -> None:
    _make_names(server, name, schema)
    file = workload_file(server, name, tmp_path)
    refused = sample(server, name, file, home, "--share", "0.5")
    assert refused.returncode == 1
    assert _CALLS in refused.stderr, refused.stderr
    assert place in refused.stderr
    assert _HINT in refused.stderr
    dsn = server.dsn_for("reader", name)
    whole = pgdyno("workload", "copy", str(file), "--dsn", dsn, PGDYNO_HOME=str(home))
    assert whole.returncode == 0, whole.stderr  # pg_dump reads it; only a restore calls the function
    short = ("--clients", "1", "--blocks", "1", "--block", "300ms")
    options = ("--pg-bin", str(server.bin_directory), *short)
    measured = pgdyno("bench", str(file), *options, PGDYNO_HOME=str(home), PGDYNO_AS_BOOTED="1")
    assert measured.returncode == 1
    assert _CALLS in measured.stderr, measured.stderr
    assert ('table "names"' if "by_fold" not in place else place) in measured.stderr
    assert _HINT in measured.stderr


@pytest.mark.parametrize(("name", "schema"), [("of_checks", _CHECKED), ("of_indexes", _INDEXED)])
def test_generated_rows_name_it_too(
    server: RealServer, tmp_path: Path, home: Path, name: str, schema: str
) -> None:
    _make_names(server, name, schema)
    file, dsn = workload_file(server, name, tmp_path), server.dsn_for("reader", name)
    done = pgdyno("workload", "copy", str(file), "--dsn", dsn, "--synthetic", PGDYNO_HOME=str(home))
    if schema == _INDEXED:
        assert done.returncode == 1
        assert "CREATE INDEX by_fold ON app.names USING btree (app.is_folded(name));" in done.stderr
        assert _CALLS in done.stderr
        return
    assert done.returncode == 0, done.stderr
    assert f"app.names is empty: {_CALLS}" in done.stdout


_OF_EXTENSION = """
CREATE EXTENSION pg_freespacemap;
CREATE FUNCTION ok(n int) RETURNS bool IMMUTABLE LANGUAGE sql SET search_path = public
    AS $$ SELECT pg_freespace('pg_class', n) >= 0 $$;
CREATE TABLE free (id int CHECK (ok(id)));
INSERT INTO free VALUES (1);
ANALYZE;
"""
_LACKED = (
    "function pg_freespace(unknown, integer) does not exist: it may be of extension pg_freespacemap, "
    'which the copy lacks; or SQL function "ok" '
)


def test_an_extension_that_a_copy_lacks_is_named(server: RealServer, tmp_path: Path, home: Path) -> None:
    server.execute("CREATE DATABASE free")
    server.execute(_OF_EXTENSION, "free")
    file, dsn = workload_file(server, "free", tmp_path), server.dsn_for("reader", "free")
    refused = sample(server, "free", file, home, "--share", "0.5")
    assert (refused.returncode, _LACKED in refused.stderr) == (1, True), refused.stderr
    made = pgdyno("workload", "copy", str(file), "--dsn", dsn, "--synthetic", PGDYNO_HOME=str(home))
    assert made.returncode == 0, made.stderr
    assert f"public.free is empty: {_LACKED}" in made.stdout
    server.execute("CREATE VIEW spaces AS SELECT pg_freespace('free', 0)", "free")
    refused = sample(server, "free", file, home, "--share", "0.5", "--replace")
    assert "function public.pg_freespace(regclass, bigint) does not exist" in refused.stderr
    assert "the copy lacks extension pg_freespacemap" in refused.stderr
