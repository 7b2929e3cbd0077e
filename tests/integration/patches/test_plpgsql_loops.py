"""PL/pgSQL of a patched server does in loops what that of a released one does."""

from __future__ import annotations

import psycopg
from tests.fix_servers import RealServer
from tests.integration.patches.wire import PATCHED_BUILD

pytestmark = PATCHED_BUILD

FUNCTION = """
    CREATE OR REPLACE FUNCTION tried(keys integer[], way integer) RETURNS SETOF text LANGUAGE plpgsql AS $$
    DECLARE key integer; inner_key integer; row record; said text; part integer[];
    BEGIN
        <<outermost>>
        FOREACH key IN ARRAY keys LOOP
            CONTINUE WHEN key % 5 = 0;
            EXIT WHEN way = 1 AND key > 40;
            IF key % 2 = 0 THEN
                FOREACH inner_key IN ARRAY keys[1:3] LOOP
                    CONTINUE outermost WHEN way = 2 AND inner_key + key > 30;
                    EXIT outermost WHEN way = 3 AND inner_key * key > 60;
                    RETURN NEXT format('inner %s of %s', inner_key, key);
                END LOOP;
            ELSIF key % 3 = 0 THEN
                BEGIN
                    PERFORM 1 / (key - 9);
                    RETURN NEXT 'divided by ' || key - 9;
                EXCEPTION WHEN division_by_zero THEN
                    GET STACKED DIAGNOSTICS said = PG_EXCEPTION_CONTEXT;
                    RETURN NEXT said;
                END;
            ELSE
                CASE key % 4 WHEN 1 THEN said := 'one'; ELSE said := NULL; END CASE;
                FOR row IN SELECT i, i * key AS product FROM generate_series(1, 2) AS i LOOP
                    RETURN QUERY SELECT format('%s %s %s', said, row.i, row.product);
                END LOOP;
                EXECUTE 'SELECT $1 + 1' INTO inner_key USING key;
                RETURN NEXT inner_key::text;
            END IF;
            RETURN QUERY SELECT 'returned' WHERE FOUND;
            IF way = 4 AND key > 20 THEN RETURN; END IF;
            ASSERT way <> 5 OR key < 30, 'key ' || key;
        END LOOP;
        RETURN NEXT 'found: ' || FOUND;
        FOREACH part SLICE 1 IN ARRAY ARRAY[keys[1:2], keys[3:4]] LOOP
            RETURN NEXT part::text;
        END LOOP;
        FOREACH key IN ARRAY '{}'::integer[] LOOP
            RETURN NEXT 'never';
        END LOOP;
        RETURN NEXT 'found: ' || FOUND;
    END $$
"""
COMMITTING = """
    DO $$
    DECLARE key integer;
    BEGIN
        FOREACH key IN ARRAY ARRAY[1, 2, 3, 4] LOOP
            INSERT INTO kept VALUES (key);
            IF key % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF;
        END LOOP;
    END $$
"""
CALL = "SELECT * FROM tried(ARRAY(SELECT generate_series(1, 60)), %s)"
WAYS = range(6)


def tried(server: RealServer) -> list[str]:
    """Return what the function says in all ways, and what it fails with, with its place."""
    said: list[str] = []
    with psycopg.connect(server.dsn, autocommit=True) as session:
        session.execute(FUNCTION)
        for way in WAYS:
            try:
                said += [row[0] for row in session.execute(CALL, (way,))]
            except psycopg.Error as error:
                said.append(f"{error} {error.diag.context}")
        session.execute("CREATE TABLE IF NOT EXISTS kept (key integer)")
        session.execute("TRUNCATE kept")
        session.execute(COMMITTING.encode())
        said += [str(row[0]) for row in session.execute("SELECT key FROM kept ORDER BY key")]
    return said


def test_loops_over_arrays_do_the_same_in_all_ways(released: RealServer, patched: RealServer) -> None:
    said = tried(patched)
    assert said == tried(released)
    assert said[-2:] == ["2", "4"]
    assert any("PL/pgSQL function tried(integer[],integer) line 16 at PERFORM" in one for one in said)
    assert any(one.startswith("key 31") for one in said)
    assert len(said) > 500
