"""SQL of variants: the statements that may run, and the messages for all others."""

from __future__ import annotations

from contextlib import nullcontext as does_not_raise

import pytest

from pgdyno.base.errors import VariantError
from pgdyno.model.variants.schema_sql import ALLOWED, MOST_CHARACTERS, require_schema_statements, script_of
from pgdyno.model.variants.variant import Variant, parse_variant, require_measurable

OTHERWISE = "the SQL of a variant may only change indexes, statistics and storage parameters"
APART = "each statement is a transaction of its own, as CREATE INDEX CONCURRENTLY and VACUUM require"


def read(path: str) -> str:
    """Return the contents of the only file."""
    assert path == "shop/orders.sql"
    return "-- what is missing;\nCREATE INDEX ON orders\n\t(customer_id, state); ANALYZE orders;\n"


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE INDEX ON orders (customer_id)",
        "create unique index concurrently x on only s.t using btree (lower(a) text_ops) where b > 'c;'",
        "DROP INDEX CONCURRENTLY IF EXISTS a, b",
        "DROP INDEX s.a RESTRICT",
        "ALTER INDEX a SET (fillfactor = 70)",
        "alter index if exists s.a reset (fillfactor), alter column 2 set statistics 500",
        "ALTER INDEX a ATTACH PARTITION s.b",
        "CREATE STATISTICS (ndistinct) ON a, b FROM t",
        "ALTER TABLE t SET (fillfactor = 70, autovacuum_enabled = off)",
        'alter table if exists only s."T x" reset(fillfactor), alter column a set statistics 1000',
        "ALTER TABLE t ALTER a SET STATISTICS DEFAULT, ALTER b SET STATISTICS -1",
        "VACUUM",
        "VACUUM (FULL, ANALYZE) t",
        "ANALYZE t (a)",
        "ANALYSE",
        "CLUSTER t USING i",
    ],
)
def test_indexes_statistics_and_storage_may_change(statement: str) -> None:
    with does_not_raise():
        require_schema_statements("idx", statement)


@pytest.mark.parametrize(
    "statement",
    [
        "COPY orders TO PROGRAM 'sh'",
        "COPY (SELECT 1) TO '/tmp/x'",
        "SELECT dblink('host=there', 'DROP TABLE t')",
        "CREATE EXTENSION dblink",
        "ALTER SYSTEM SET fsync = off",
        "DO $$ BEGIN PERFORM 1; END $$",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE TABLE t (a int)",
        "CREATE INDEXES",
        "DROP TABLE t",
        "DROP INDEX a CASCADE",
        "DROP INDEX a, b cascade",
        "ALTER INDEX t RENAME TO u",
        "ALTER INDEX IF EXISTS t RENAME TO u",
        "ALTER INDEX a SET (fillfactor = 70), OWNER TO other",
        "ALTER INDEX a SET TABLESPACE other",
        "ALTER INDEX ALL IN TABLESPACE a SET TABLESPACE b",
        "ALTER INDEX a DEPENDS ON EXTENSION e",
        "ALTER INDEX a ATTACH PARTITION b CASCADE",
        "DROP STATISTICS s",
        "REINDEX TABLE t",
        "EXPLAIN ANALYZE DELETE FROM t",
        "SET work_mem = '1GB'",
        "ALTER TABLE t SET UNLOGGED",
        "ALTER TABLE t SET TABLESPACE other",
        "ALTER TABLE t SET (fillfactor = 70), OWNER TO other",
        "ALTER TABLE t SET (fillfactor = 70) , ADD COLUMN b int DEFAULT f(1)",
        "ALTER TABLE t ALTER COLUMN a TYPE text USING f(a)",
        "ALTER TABLE t ALTER COLUMN a SET STATISTICS 1, DISABLE TRIGGER ALL",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "\\copy orders to x",
    ],
)
def test_all_other_statements_are_refused_with_the_list(statement: str) -> None:
    with pytest.raises(VariantError) as caught:
        require_schema_statements("idx", f"VACUUM; {statement}; CLUSTER")
    assert caught.value.message == f'variant "idx" may not run "{statement}"'
    assert caught.value.detail == f"statement 2 of 3: {OTHERWISE}"
    assert caught.value.hint == f"allowed: {ALLOWED}"


def test_the_list_of_statements() -> None:
    assert ALLOWED == (
        "CREATE INDEX, DROP INDEX without CASCADE, CREATE STATISTICS, ALTER TABLE or INDEX … SET (…), "
        "ALTER TABLE or INDEX … ALTER COLUMN … SET STATISTICS, ALTER INDEX … ATTACH PARTITION, VACUUM, "
        "ANALYZE, CLUSTER"
    )


def test_the_name_of_a_file_of_another_kind_is_explained() -> None:
    with pytest.raises(VariantError) as caught:
        parse_variant("idx:sql=orders.txt", read)
    assert caught.value.message == 'variant "idx" may not run "orders.txt"'
    assert caught.value.hint == f"a file of SQL has a name that ends in .sql; allowed: {ALLOWED}"


@pytest.mark.parametrize("word", ["BEGIN", "START TRANSACTION", "commit", "ROLLBACK TO a"])
def test_a_transaction_is_refused_with_the_reason(word: str) -> None:
    with pytest.raises(VariantError) as caught:
        require_schema_statements("idx", word)
    assert caught.value.detail == f"statement 1 of 1: {APART}"


def test_sql_without_a_statement_is_refused() -> None:
    with pytest.raises(VariantError, match='the SQL of variant "idx" has no statement'):
        require_schema_statements("idx", " ; -- nothing")


def test_more_sql_than_is_read_is_refused() -> None:
    script = f"CREATE INDEX ON t ({'a' * MOST_CHARACTERS})"
    with pytest.raises(VariantError, match=r'the SQL of variant "idx" has 262,164 characters') as caught:
        require_schema_statements("idx", script)
    assert caught.value.detail == "at most 262,144 are read"


def test_a_long_statement_is_shown_by_its_beginning() -> None:
    with pytest.raises(VariantError) as caught:
        require_schema_statements("idx", f"SELECT {'a' * 200}")
    assert caught.value.message == f'variant "idx" may not run "SELECT {"a" * 92}…"'


def test_equal_scripts_are_equal_texts() -> None:
    one = script_of(["DROP INDEX a;", "CREATE INDEX a ON t (x) WHERE y = 'a  ;b'"])
    other = script_of(["DROP /* old; */ INDEX\n a; -- new\nCREATE INDEX a\n ON t (x) WHERE y = 'a  ;b';;"])
    assert one == other == "DROP INDEX a; CREATE INDEX a ON t (x) WHERE y = 'a  ;b'"
    assert script_of([one]) == one


def test_a_variant_has_the_statements_of_its_file_and_its_settings() -> None:
    variant = parse_variant("idx:work_mem=64MB,sql=shop/orders.sql", read)
    assert variant.statements == ("CREATE INDEX ON orders (customer_id, state)", "ANALYZE orders")
    assert variant.gucs == {"work_mem": "64MB"}
    assert Variant("default").statements == ()


def test_a_written_variant_has_the_statements_themselves() -> None:
    variant = parse_variant("idx:sql=shop/orders.sql", read)
    written = "idx:sql='CREATE INDEX ON orders (customer_id, state); ANALYZE orders'"
    assert str(variant) == written
    assert parse_variant(written, read) == variant


def test_text_that_ends_like_the_name_of_a_file_stays_text() -> None:
    variant = Variant("idx", {"sql": script_of(["VACUUM shop.sql"])})
    assert str(variant) == "idx:sql=VACUUM shop.sql;"
    assert parse_variant(str(variant), read) == variant


def test_constants_in_several_lines_are_shown_in_one() -> None:
    with pytest.raises(VariantError) as caught:
        require_schema_statements("idx", "SELECT 'a'\n 'b\nc'")
    assert caught.value.message == "variant \"idx\" may not run \"SELECT 'a' 'b c'\""


def test_a_variant_of_a_file_is_checked_as_one_of_a_command_line() -> None:
    with pytest.raises(VariantError, match="statement 1 of 1") as caught:
        require_measurable([Variant("idx", {"sql": script_of(["CREATE EXTENSION dblink"])})])
    assert caught.value.message == 'variant "idx" may not run "CREATE EXTENSION dblink"'


def test_commands_that_measure_no_copies_refuse_sql() -> None:
    with pytest.raises(VariantError) as caught:
        parse_variant("idx:sql=orders.sql")
    assert caught.value.message == 'variant "idx:sql=orders.sql" cannot run SQL here'
    assert caught.value.hint == (
        "pgdyno compare, bench and experiment files accept sql: they measure copies of the data"
    )
