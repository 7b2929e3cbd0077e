"""A patched server finds the same rows by indexes, also while others change them."""

from __future__ import annotations

import threading

import pytest
from tests.fix_servers import RealServer
from tests.integration.patches.wire import PATCHED_BUILD, Wire, rows_of

pytestmark = PATCHED_BUILD

CROWD, TURNS, CURSORS = 12, 60, 24
TABLES = """
    CREATE EXTENSION btree_gin;
    CREATE TABLE found AS
      SELECT i AS id, md5(i::text) AS hash, i % 100 AS few, repeat('x', i % 300) AS pad, point(i, -i) AS place
      FROM generate_series(1, 30000) AS i;
    CREATE UNIQUE INDEX ON found (id);
    CREATE INDEX ON found (hash);
    CREATE INDEX ON found (few);
    CREATE INDEX ON found USING hash (pad);
    CREATE INDEX ON found USING gist (place);
    CREATE INDEX ON found USING spgist (hash);
    CREATE INDEX ON found USING gin (few);
    CREATE INDEX ON found USING brin (id);
    UPDATE found SET pad = 'y' WHERE id % 3 = 0;
    DELETE FROM found WHERE id % 7 = 0;
"""
CHANGES = ("VACUUM found", "UPDATE found SET pad = pad || 'z' WHERE id % 5 = 0", "ANALYZE found")
ONLY_BY_INDEXES = (
    "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; "
    "SET enable_mergejoin = off; SET enable_sort = off; SET max_parallel_workers_per_gather = 0"
)
BY_KEYS = "SELECT k, t.* FROM generate_series({}) AS k LEFT JOIN found AS t ON t.{} = {}"
QUESTIONS = (
    BY_KEYS.format("-20, 30020", "id", "k"),
    BY_KEYS.format("1, 30020, 3", "hash", "md5(k::text)"),
    BY_KEYS.format("-1, 101", "few", "k"),
    "SELECT * FROM found WHERE id BETWEEN 4000 AND 9000 ORDER BY id DESC",
    "SELECT * FROM found WHERE hash > 'f' ORDER BY hash",
    "SELECT id FROM found WHERE id > 29000 ORDER BY id DESC",
    "SELECT * FROM found WHERE pad = 'yz'",
    "SELECT * FROM found WHERE place <@ box '(100,0),(900,-950)'",
)
BY_BITMAPS = (
    "SELECT * FROM found WHERE few = 7 AND id < 9000",
    "SELECT * FROM found WHERE id BETWEEN 700 AND 900",
)


@pytest.fixture(scope="module", autouse=True)
def tables(released: RealServer, patched: RealServer) -> None:
    """The same tables in both servers."""
    for server in (released, patched):
        wire = Wire(server)
        for statement in (TABLES, *CHANGES):
            assert not [content for kind, content in wire.query(statement.encode()) if kind == b"E"]
        wire.close()


def answers(server: RealServer, settings: str, statement: str) -> list[tuple[bytes, bytes]]:
    """Return the messages of an answer, but for tables' numbers, and check that it comes by an index."""
    wire = Wire(server)
    wire.query(settings.encode())
    plan = b"".join(rows_of(wire.query(b"EXPLAIN " + statement.encode())))
    assert b"Index" in plan
    found = without_columns(wire.query(statement.encode()))
    wire.close()
    return found


def without_columns(messages: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Leave out the columns' descriptions, which have the table's number in them."""
    return [(kind, content) for kind, content in messages if kind != b"T"]


@pytest.mark.parametrize("statement", QUESTIONS)
def test_the_same_rows_are_found_by_keys(released: RealServer, patched: RealServer, statement: str) -> None:
    found = answers(patched, ONLY_BY_INDEXES, statement)
    assert found == answers(released, ONLY_BY_INDEXES, statement)
    assert len(rows_of(found)) > 100


@pytest.mark.parametrize("statement", BY_BITMAPS)
def test_the_same_rows_are_found_by_bitmaps(
    released: RealServer, patched: RealServer, statement: str
) -> None:
    found = answers(patched, "SET enable_seqscan = off; SET enable_indexscan = off", statement)
    assert found == answers(released, "SET enable_seqscan = off; SET enable_indexscan = off", statement)
    assert len(rows_of(found)) > 50


def test_keys_that_are_there_are_refused(released: RealServer, patched: RealServer) -> None:
    statements = (
        b"BEGIN",
        b"INSERT INTO found (id) SELECT i FROM generate_series(-500, 31000) AS i ON CONFLICT DO NOTHING",
        b"SELECT count(*), sum(id) FROM found",
        b"INSERT INTO found (id) VALUES (15000)",
        b"ROLLBACK",
    )
    said = []
    for server in (released, patched):
        wire = Wire(server)
        said.append([wire.query(statement) for statement in statements])
        wire.close()
    assert said[0] == said[1]
    assert said[0][1][0] == (b"C", b"INSERT 0 5786\0")  # 501 below, 1,000 above, and 4,285 that were deleted
    assert said[0][3][0][0] == b"E"


def test_many_pages_are_pinned_at_once(released: RealServer, patched: RealServer) -> None:
    """A backend has eight counts of pins at hand; here it needs one or two for each cursor."""
    said = []
    for server in (released, patched):
        wire = Wire(server)
        found = [wire.query(ONLY_BY_INDEXES.encode()), wire.query(b"BEGIN")]
        for i in range(CURSORS):
            query = f"SELECT * FROM found WHERE id > {i * 1000} ORDER BY id"  # noqa: S608
            found.append(wire.query(f"DECLARE c{i} CURSOR FOR {query}".encode()))
        for turn in range(40):
            fetched = (
                wire.query(f"FETCH {1 + turn % 3} FROM c{i}".encode()) for i in range(turn % 5, CURSORS)
            )
            found += [without_columns(messages) for messages in fetched]
        found += [wire.query(f"CLOSE c{i}".encode()) for i in range(0, CURSORS, 2)]
        found += [wire.query(f"MOVE 500 FROM c{i}".encode()) for i in range(1, CURSORS, 2)]
        found.append(wire.query(b"COMMIT"))
        said.append(found)
        wire.close()
    assert said[0] == said[1]
    assert not [kind for found in said for messages in found for kind, _ in messages if kind in b"EN"]
    assert [kind for kind, _ in said[1][2 + CURSORS]] == [b"D", b"C", b"Z"]


def test_a_crowd_loses_nothing(patched: RealServer) -> None:
    """Many sessions change the same rows and pages at once."""
    patched.execute("CREATE TABLE shared (id int PRIMARY KEY, n int) WITH (fillfactor = 50)")
    patched.execute("INSERT INTO shared SELECT i, 0 FROM generate_series(1, 5) AS i")
    patched.execute("CREATE SEQUENCE numbers; CREATE EXTENSION amcheck")
    failed: list[bytes] = []

    def take_part(own: int) -> None:
        wire = Wire(patched)
        for turn in range(TURNS):
            for statement in (
                f"UPDATE shared SET n = n + 1 WHERE id = {1 + (own + turn) % 5}",  # noqa: S608
                "INSERT INTO shared SELECT 10 + nextval('numbers'), 1",
                "SELECT count(*) FROM shared WHERE id BETWEEN 1 AND 100",
            ):
                failed.extend(
                    content for kind, content in wire.query(statement.encode()) if kind in (b"E", b"N")
                )
        wire.close()

    crowd = [threading.Thread(target=take_part, args=(own,)) for own in range(CROWD)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert not failed
    assert patched.execute("SELECT sum(n), count(*) FROM shared") == [(2 * CROWD * TURNS, 5 + CROWD * TURNS)]
    assert patched.execute("SELECT count(bt_index_check('shared_pkey', true))") == [(1,)]
