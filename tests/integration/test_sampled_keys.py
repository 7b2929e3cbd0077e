"""Keys of a sample, of all kinds: they hold as in the original, or the copy fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from tests.fix_copies import (
    PERIODS,
    SCHEMA,
    restored,
    rows_of,
    running_originals,
    sample,
    sampled,
    workload_file,
)
from tests.fix_servers import RealServer

pytestmark = pytest.mark.server
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


@pytest.fixture(scope="module", params=["pg15_bin", "pg18_bin"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    """A server with a warehouse."""
    with running_originals(request.getfixturevalue(request.param), "warehouse") as started:
        yield started


def test_a_database_of_all_kinds_is_sampled(server: RealServer, tmp_path: Path, home: Path) -> None:
    """Identity and generated columns, partitions of each kind, composite keys, forced policies, odd names."""
    file = workload_file(server, "warehouse", tmp_path)
    with suppress(psycopg.errors.DuplicateObject):
        server.execute("CREATE ROLE seeing LOGIN BYPASSRLS IN ROLE pg_monitor, pg_read_all_data")
    made = sampled(sample(server, "warehouse", file, home, "--share", "0.2", role="seeing"))
    database = restored(server, Path(made["dump"]))
    assert sorted(server.execute(SCHEMA, database)) == sorted(server.execute(SCHEMA, "warehouse"))
    originals = rows_of(server, "warehouse")
    assert [name for name, rows in rows_of(server, database).items() if not rows <= originals[name]] == []


def test_keys_of_partitions_domains_periods_and_unchecked_ones_are_kept(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    server.execute("CREATE DATABASE corners")
    server.execute(_CORNERS, "corners")
    [[version]] = server.execute("SELECT current_setting('server_version_num')::int / 10000")
    if version >= 18:
        server.execute(f"{PERIODS}ANALYZE", "corners")
    made = sampled(
        sample(server, "corners", workload_file(server, "corners", tmp_path), home, "--share", "0.1")
    )
    database = restored(server, Path(made["dump"]))
    assert sorted(server.execute(SCHEMA, database)) == sorted(server.execute(SCHEMA, "corners"))
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
    assert "could not create all indexes and keys on the sampled rows" in done.stderr
    assert "children_parent_fkey" in done.stderr
    assert not file.with_suffix(".dump").exists()
