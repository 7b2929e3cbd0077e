"""Copies with a share of the rows, of real databases: all keys hold, and joins find what they do there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.fix_home import Run, pgdyno
from tests.fix_servers import RealServer, running_server
from tests.integration.test_synthetic_copy import restored, workload_file
from tests.shop import buying, market, warehouse

from pgdyno.server.inspection.linked_tables import read_linked_tables
from pgdyno.server.process.row_source import RowSource

pytestmark = pytest.mark.server

_SETTINGS = "shared_preload_libraries = 'pg_stat_statements'\nautovacuum = off\n"
_SCHEMA = """
SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) || convalidated
FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT pg_get_indexdef(indexrelid) FROM pg_index
    JOIN pg_class c ON c.oid = indexrelid WHERE relnamespace = 'public'::regnamespace
"""
_TABLES = """
SELECT oid::regclass::text FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


_CORNERS = """
CREATE DOMAIN number AS bigint CHECK (VALUE > 0);
CREATE TABLE days (day date PRIMARY KEY, n number UNIQUE NOT NULL);
INSERT INTO days SELECT date '2020-01-01' + n, n + 1 FROM generate_series(0, 2999) n;
CREATE TABLE orders (id bigint, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE early PARTITION OF orders FOR VALUES FROM (MINVALUE) TO ('2024-01-01');
CREATE TABLE late PARTITION OF orders FOR VALUES FROM ('2024-01-01') TO (MAXVALUE);
INSERT INTO orders SELECT n, date '2020-01-01' + n % 3000 FROM generate_series(1, 9000) n;
ALTER TABLE early ADD FOREIGN KEY (day) REFERENCES days;
CREATE TABLE returns (id int PRIMARY KEY, day date, order_id bigint,
    FOREIGN KEY (order_id, day) REFERENCES late (id, day));
INSERT INTO returns SELECT row_number() OVER (), day, id FROM late;
CREATE TABLE numbered (id int PRIMARY KEY, n number REFERENCES days (n));
INSERT INTO numbered SELECT n, nullif(1 + n % 3000, 7) FROM generate_series(1, 4000) n;
CREATE TABLE unchecked (id int PRIMARY KEY, n bigint);
INSERT INTO unchecked SELECT n, n * 2 FROM generate_series(1, 3000) n;
ALTER TABLE unchecked ADD FOREIGN KEY (n) REFERENCES days (n) NOT VALID;
CREATE TABLE chain (id int PRIMARY KEY, former int REFERENCES chain);
INSERT INTO chain SELECT n, nullif(n - 1, 0) FROM generate_series(1, 1500) n;
CREATE TABLE nothing ();
ANALYZE;
"""
_PERIODS = """
CREATE EXTENSION btree_gist;
CREATE TABLE rooms (id int, held daterange, PRIMARY KEY (id, held WITHOUT OVERLAPS));
INSERT INTO rooms SELECT n, daterange(date '2024-01-01' + k * 10, date '2024-01-11' + k * 10)
    FROM generate_series(1, 500) n, generate_series(0, 4) k;
CREATE TABLE stays (id int PRIMARY KEY, room int, held daterange,
    FOREIGN KEY (room, PERIOD held) REFERENCES rooms (id, PERIOD held));
INSERT INTO stays
    SELECT n, 1 + n % 500, daterange('2024-01-05', '2024-01-25') FROM generate_series(1, 5000) n;
ANALYZE;
"""


def sample(
    server: RealServer, database: str, file: Path, home: Path, *options: str, role: str = "reader"
) -> Run:
    """Sample a database."""
    return pgdyno(
        *("workload", "copy", str(file), "--dsn", server.dsn_for(role, database)),
        *("--sample", "--json", *options),
        PGDYNO_HOME=str(home),
    )


def sampled(done: Run) -> Mapping[str, Any]:
    """Return the output of a copy that has succeeded."""
    assert done.returncode == 0, done.stderr
    printed: Mapping[str, Any] = json.loads(done.stdout)
    return printed


def rows_of(server: RealServer, database: str) -> dict[str, set[str]]:
    """Return the texts of all rows by table: equal ones of a table count once."""
    found = {}
    for (name,) in server.execute(_TABLES, database):
        # FROM ONLY: rows of tables that inherit are theirs.
        query = f"SELECT t::text FROM ONLY {name} t"  # noqa: S608 — of this test's own
        found[str(name)] = {str(row) for (row,) in server.execute(query, database)}
    return found


@pytest.fixture(scope="module", params=["pg15_bin", "pg18_bin"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    """A server with a market, a warehouse, and a shop."""
    with running_server(request.getfixturevalue(request.param), _SETTINGS) as started:
        started.execute("CREATE ROLE reader LOGIN IN ROLE pg_read_all_data")
        for module, database in ((market, "market"), (warehouse, "warehouse"), (buying, "busy")):
            started.execute(f"CREATE DATABASE {database}")
            module.make(started.dsn_for("postgres", database))
        yield started


@pytest.fixture(scope="module")
def made(server: RealServer, tmp_path_factory: pytest.TempPathFactory, home: Path) -> Mapping[str, Any]:
    """The output of a sample of the market, which is restored as the database made."""
    file = workload_file(server, "market", tmp_path_factory.mktemp("market"))
    printed = sampled(sample(server, "market", file, home, "--share", "0.1"))
    restored(server, Path(printed["dump"]), "made")
    return printed


def test_all_indexes_and_keys_of_the_original_hold(server: RealServer, made: Mapping[str, Any]) -> None:
    assert Path(made["dump"]).stat().st_mode & 0o777 == 0o600
    assert sorted(server.execute(_SCHEMA, "made")) == sorted(server.execute(_SCHEMA, "market"))


@pytest.mark.usefixtures("made")
def test_rows_are_those_of_the_original(server: RealServer) -> None:
    originals = rows_of(server, "market")
    for name, rows in rows_of(server, "made").items():
        assert rows <= originals[name], name
        assert rows, name


def test_tables_have_about_the_share_of_the_rows(server: RealServer, made: Mapping[str, Any]) -> None:
    rows = made["rows"]
    assert rows["public.countries"] == 60
    for name, expected in (("visits", 2000), ("messages", 400), ("urgent_messages", 400), ("reviews", 800)):
        assert rows[f"public.{name}"] == pytest.approx(expected, rel=0.25), name  # five deviations or more
        count = f"SELECT count(*) FROM ONLY {name}"  # noqa: S608 — of this test's own
        assert server.execute(count, "made") == [(rows[f"public.{name}"],)]
    assert 0 < rows["public.orders"] < 6000
    assert any(one.startswith("public.products: ") for one in made["notes"])
    assert any("10\N{NO-BREAK SPACE}% of the original's rows" in one for one in made["notes"])


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("parent", "key", "child", "reference"),
    [
        ("customers", "id", "orders", "customer"),
        ("customers", "id", "reviews", "customer"),
        ("customers", "id", "messages", "customer"),
        ("orders", "id, placed_on", "lines", "order_id, placed_on"),
    ],
)
def test_parents_have_all_their_rows_or_came_alone(
    server: RealServer, parent: str, key: str, child: str, reference: str
) -> None:
    query = (
        f"SELECT {key}, (SELECT count(*) FROM {child} c "  # noqa: S608 — of this test's own
        f"WHERE ({reference}) = ({', '.join(f'p.{one}' for one in key.split(', '))})) "
        f"FROM {parent} p"
    )
    originals = {tuple(one): int(count) for *one, count in server.execute(query, "market")}
    copies = {tuple(one): int(count) for *one, count in server.execute(query, "made")}
    with_rows = {one: count for one, count in copies.items() if count}
    assert with_rows == {one: originals[one] for one in with_rows}
    assert len(with_rows) > 100


@pytest.mark.usefixtures("made")
def test_sequences_go_on_and_views_are_filled(server: RealServer) -> None:
    for database in ("market", "made"):
        assert server.execute("SELECT nextval('orders_id_seq')", database) == [(20001,)]
    [[times]] = server.execute("SELECT sum(times) FROM sold", "made")
    assert server.execute("SELECT count(*) FROM lines", "made") == [(times,)]


def test_the_same_seed_takes_the_same_rows_and_another_one_others(
    server: RealServer, made: Mapping[str, Any], tmp_path: Path, home: Path
) -> None:
    file = workload_file(server, "market", tmp_path)
    again = sampled(sample(server, "market", file, home, "--share", "0.1"))
    assert again["rows"] == made["rows"]
    others = sampled(sample(server, "market", file, home, "--share", "0.1", "--seed", "2", "--replace"))
    assert others["rows"] != made["rows"]


def test_a_chosen_table_brings_along_what_belongs_to_it(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    file = workload_file(server, "market", tmp_path)
    made = sampled(sample(server, "market", file, home, "--share", "0.1", "--sample-from", "countries"))
    database = restored(server, Path(made["dump"]), "by_country")
    whole = "SELECT country, count(*) FROM customers GROUP BY country"
    originals = dict(server.execute(whole, "market"))
    copies = dict(server.execute(whole, database))
    complete = [one for one, count in copies.items() if count == originals[one]]
    assert 0 < len(complete) < 20
    assert 0.5 * sum(copies.values()) < sum(copies[one] for one in complete)  # others came as referrers


def test_a_database_of_all_kinds_is_sampled(server: RealServer, tmp_path: Path, home: Path) -> None:
    """Identity and generated columns, partitions of each kind, composite keys, forced policies, odd names."""
    file = workload_file(server, "warehouse", tmp_path)
    made = sampled(sample(server, "warehouse", file, home, "--share", "0.2", role="postgres"))
    database = restored(server, Path(made["dump"]))
    assert sorted(server.execute(_SCHEMA, database)) == sorted(server.execute(_SCHEMA, "warehouse"))
    originals = rows_of(server, "warehouse")
    assert [name for name, rows in rows_of(server, database).items() if not rows <= originals[name]] == []


def test_keys_of_partitions_domains_periods_and_unchecked_ones_are_kept(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    server.execute("CREATE DATABASE corners")
    server.execute(_CORNERS, "corners")
    [[version]] = server.execute("SELECT current_setting('server_version_num')::int / 10000")
    if version >= 18:
        server.execute(_PERIODS, "corners")
    made = sampled(
        sample(server, "corners", workload_file(server, "corners", tmp_path), home, "--share", "0.1")
    )
    database = restored(server, Path(made["dump"]))
    assert sorted(server.execute(_SCHEMA, database)) == sorted(server.execute(_SCHEMA, "corners"))
    rows = made["rows"]
    assert rows["public.chain"] > 1400  # all that comes before any
    assert 100 < rows["public.returns"] < rows["public.orders"] < 3000
    missing = (
        "SELECT count(*) FROM unchecked u WHERE NOT EXISTS (SELECT FROM days d WHERE d.n = u.n) AND n <= 3000"
    )
    assert server.execute(missing, database) == [(0,)]
    assert server.execute("SELECT count(*) > 0 FROM unchecked WHERE n > 3000", database) == [(True,)]
    if version >= 18:
        assert rows["public.rooms"] == 2500
        assert 300 < rows["public.stays"] < 700


def test_nothing_but_a_role_that_sees_all_rows_samples(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    file = workload_file(server, "warehouse", tmp_path)
    server.execute("CREATE ROLE stranger LOGIN")
    refused = sample(server, "warehouse", file, home, "--share", "0.2", role="stranger")
    assert refused.returncode == 1
    assert "the role may not read public." in refused.stderr
    policed = sample(server, "warehouse", file, home, "--share", "0.2")
    assert policed.returncode == 4
    assert "policies hide rows of public.policed from the role" in policed.stderr
    assert not file.with_suffix(".dump").exists()


def test_a_key_that_the_original_breaks_fails_the_copy(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    server.execute("CREATE DATABASE broken")
    server.execute("CREATE TABLE parents (id int PRIMARY KEY)", "broken")
    server.execute("CREATE TABLE children (id int PRIMARY KEY, parent int REFERENCES parents)", "broken")
    server.execute("ALTER TABLE children DISABLE TRIGGER ALL", "broken")
    server.execute("INSERT INTO children VALUES (1, 2)", "broken")
    file = workload_file(server, "broken", tmp_path)
    done = sample(server, "broken", file, home, "--share", "0.5")
    assert done.returncode == 1
    assert "could not make all indexes and keys on the sampled rows" in done.stderr
    assert "children_parent_fkey" in done.stderr
    assert not file.with_suffix(".dump").exists()


def test_rows_are_read_in_one_snapshot_under_the_locks_of_a_query(server: RealServer) -> None:
    dsn = server.dsn_for("reader", "market")
    held = (
        "SELECT DISTINCT mode FROM pg_locks WHERE database = (SELECT oid FROM pg_database "
        "WHERE datname = 'market') AND locktype = 'relation'"
    )
    with RowSource.open(dsn, 1e9) as source:
        source.keep(read_linked_tables(source.connection).tables)
        assert server.execute(held) == [("AccessShareLock",)]
        server.execute("INSERT INTO visits VALUES ('after', 1)", "market")
        count = "SELECT count(*) FROM visits WHERE page = 'after'"
        assert source.connection.execute(count.replace("visits", "public.visits").encode()).fetchall() == [
            (0,)
        ]
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            source.connection.execute("DELETE FROM public.visits")
    server.execute("DELETE FROM visits WHERE page = 'after'", "market")


def test_a_captured_workload_is_replayed_on_a_sample_taken_under_load(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    server.execute("CREATE EXTENSION pg_stat_statements", "busy")
    file, dsn = tmp_path / "busy.toml", server.dsn_for("postgres", "busy")
    with buying.load(dsn):
        captured = pgdyno("workload", "capture", "--dsn", dsn, "--for", "6s", str(file))
        assert captured.returncode == 0, captured.stderr
        made = sampled(sample(server, "busy", file, home, "--share", "0.3"))
    database = restored(server, Path(made["dump"]))
    server.execute("CREATE EXTENSION pg_stat_statements", database)
    server.execute("ANALYZE", database)
    server.execute("DROP ROLE IF EXISTS app")
    server.execute("CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_write_all_data")
    arguments = ("--dsn", server.dsn_for("app", database), "--allow-load", "--for", "4s", "--json")
    replayed = pgdyno("workload", "replay", str(file), *arguments, PGDYNO_HOME=str(home))
    assert replayed.returncode == 0, replayed.stderr
    found = json.loads(replayed.stdout)["replay"]
    assert found["likeness"]["by_quantity"]["calls"] >= 0.9, found
    assert found["likeness"]["by_quantity"]["rows"] >= 0.8, found
    assert sum(found["run"]["errors"].values()) < 0.01 * found["run"]["transactions"]
