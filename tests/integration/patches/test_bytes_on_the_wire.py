"""A patched server sends the same bytes as a released one: all types, both formats, all encodings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.fix_servers import RealServer
from tests.integration.patches.wire import BINARY, PATCHED_BUILD, TEXT, Wire, rows_of

pytestmark = PATCHED_BUILD

LITERALS = {
    "text": ["", "a", "with 'quotes' and \\ and\ttabs\n", "ä€𐍈", "x" * 200],
    "varchar": ["", "varchar", "ä€𐍈"],
    "bpchar": ["", "  padded  ", "ä  "],
    "char(12)": ["", "padded", "ä"],
    "name": ["a_name"],
    '"char"': ["c", ""],
    "int2": ["0", "-32768", "32767"],
    "int4": ["0", "-1", "9", "10", "-2147483648", "2147483647", "100000", "99999"],
    "int8": ["0", "-1", "-9223372036854775808", "9223372036854775807", "1000000000", "99999999999"],
    "oid": ["0", "4294967295"],
    "float4": ["0", "-0", "1.5e-30", "NaN", "-Infinity"],
    "float8": ["0", "0.1", "1e300", "NaN", "Infinity"],
    "numeric": ["0", "-12345678901234567890.123456789", "NaN", "Infinity"],
    "bool": ["t", "f"],
    "bytea": ["\\x", "\\x00ff41"],
    "date": ["2026-11-25", "infinity", "0044-03-15 BC"],
    "time": ["00:00:00", "23:59:59.999999"],
    "timetz": ["12:00:00+05:45"],
    "timestamp": ["2026-11-25 16:00:00.000001", "-infinity"],
    "timestamptz": ["2026-11-25 16:00:00+00"],
    "interval": ["1 year -2 days 03:04:05.6"],
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "json": ['{"a": [1, "ä"]}'],
    "jsonb": ['{"a": [1, "ä"]}'],
    "inet": ["::1/128", "10.0.0.0/8"],
    "macaddr": ["08:00:2b:01:02:03"],
    "bit(5)": ["10101"],
    "point": ["(1,2)"],
    "box": ["(1,2),(3,4)"],
    "money": ["12.34"],
    "int4[]": ["{}", "{1,NULL,-3}"],
    "text[]": ["{}", '{a,"b,c",NULL,""}'],
    "int4range": ["empty", "[1,10)"],
    "tsvector": ["'a':1 'ä':2A"],
    "regclass": ["pg_class"],
    "xid8": ["18446744073709551615"],
    "pg_lsn": ["16/B374D848"],
}
CATALOGS = ("pg_class", "pg_type", "pg_proc", "pg_attribute", "pg_operator", "pg_collation", "pg_settings")
CHARACTERS = {
    "EUC_JP": "日本語", "EUC_JIS_2004": "日本語", "SJIS": "日本語", "SHIFT_JIS_2004": "日本語",
    "EUC_CN": "汉语", "GBK": "汉语", "GB18030": "汉语𐍈", "BIG5": "漢語", "EUC_TW": "漢語",
    "EUC_KR": "한국어", "UHC": "한국어", "JOHAB": "한국어",
    "KOI8R": "привет", "KOI8U": "привіт", "WIN1251": "привет", "WIN866": "привет", "ISO_8859_5": "привет",
    "LATIN1": "äßé", "LATIN2": "čšž", "LATIN3": "ġħĉ", "LATIN4": "āēī", "LATIN5": "ğış", "LATIN6": "þŋđ",
    "LATIN7": "āčē", "LATIN8": "ẁẃŵ", "LATIN9": "€œŸ", "LATIN10": "șț„", "ISO_8859_6": "عربي",
    "ISO_8859_7": "ελλ", "ISO_8859_8": "עבר", "WIN1250": "čšž", "WIN1252": "€äß", "WIN1253": "ελλ",
    "WIN1254": "ğış", "WIN1255": "עבר", "WIN1256": "عربي", "WIN1257": "āčē", "WIN1258": "ơưđ",
    "WIN874": "ไทย", "UTF8": "ä€𐍈", "SQL_ASCII": "ä€𐍈",
}  # fmt: skip
TABLES = """
    CREATE DOMAIN short AS text;
    CREATE DOMAIN small AS int4 CHECK (value < 100);
    CREATE TABLE wide (id int4, t text STORAGE external, c text STORAGE extended, b char(3000), v varchar);
    INSERT INTO wide
      SELECT i, repeat(md5(i::text), 3000 * i), repeat('ä€', 20000 * i), i::text, repeat('v', i)
      FROM generate_series(1, 6) AS i;
    INSERT INTO wide VALUES (NULL, NULL, NULL, NULL, NULL);
    CREATE TABLE many AS
      SELECT i, i::int8 * 1234567891 AS big, md5(i::text) AS hash, (i % 7)::text::char(4) AS pad
      FROM generate_series(1, 20000) AS i;
    CREATE TABLE several (w short, s small, n int4[], r wide);
    INSERT INTO several SELECT 'ä', 7, ARRAY[1, 2], ROW(1, 'a', 'b', 'c', 'd')::wide;
"""


@pytest.fixture(scope="module", autouse=True)
def tables(released: RealServer, patched: RealServer) -> None:
    """The same tables in both servers."""
    for server in (released, patched):
        wire = Wire(server)
        assert not [content for kind, content in wire.query(TABLES.encode()) if kind == b"E"]
        wire.close()


def pairs(
    released: RealServer, patched: RealServer, encoding: str = "UTF8", database: str = "postgres"
) -> tuple[Wire, Wire]:
    return Wire(released, database, encoding), Wire(patched, database, encoding)


def same(both: tuple[Wire, Wire], statement: str | bytes) -> list[tuple[bytes, bytes]]:
    """Ask both servers in all ways, and return what they said to the last question, which was the same."""
    text = statement if isinstance(statement, bytes) else statement.encode()
    one, other = both
    said = one.query(text)
    assert said == other.query(text)
    for form in (BINARY, TEXT):
        for rows in (0, 3):
            said = one.execute(text, form, rows)
            assert said == other.execute(text, form, rows)
    return said


def of_all_types() -> Iterator[str]:
    for kind, literals in LITERALS.items():
        values = ", ".join("'{}'::{}".format(one.replace("'", "''"), kind) for one in literals)
        yield f"SELECT {values}, NULL::{kind}"


@pytest.mark.parametrize("statement", [*of_all_types()], ids=list(LITERALS))
def test_values_of_all_types(released: RealServer, patched: RealServer, statement: str) -> None:
    both = pairs(released, patched)
    (row,) = rows_of(same(both, statement))
    assert row.endswith(b"\xff\xff\xff\xff")  # NULL
    for wire in both:
        wire.close()


@pytest.mark.parametrize("catalog", CATALOGS)
def test_rows_of_catalogs(released: RealServer, patched: RealServer, catalog: str) -> None:
    """They have columns of most types, and are the same in all new servers, but for files' numbers."""
    both = pairs(released, patched)
    ordered = {
        "pg_settings": "SELECT name, unit, vartype, enumvals, boot_val FROM pg_settings ORDER BY name",
        "pg_attribute": "SELECT * FROM pg_attribute WHERE attrelid < 16384 ORDER BY attrelid, attnum",
    }
    statement = ordered.get(catalog, f"SELECT * FROM {catalog} WHERE oid < 16384 ORDER BY oid")  # noqa: S608
    if catalog == "pg_class":
        statement = statement.replace("*", "oid, relname, relnatts, relkind, relacl, reloptions")
    assert len(rows_of(same(both, statement))) >= 3
    for wire in both:
        wire.close()


@pytest.mark.parametrize("table", ["wide", "many", "several"])
def test_long_values_and_many_rows(released: RealServer, patched: RealServer, table: str) -> None:
    both = pairs(released, patched)
    assert rows_of(same(both, f"SELECT * FROM {table}"))  # noqa: S608
    copied = [wire.query(f"COPY {table} TO STDOUT".encode()) for wire in both]
    assert copied[0] == copied[1]
    for wire in both:
        wire.close()


@pytest.mark.parametrize("encoding", CHARACTERS)
def test_texts_in_all_encodings_of_clients(released: RealServer, patched: RealServer, encoding: str) -> None:
    """From a database in UTF8: characters that the encoding has, and an error for one that it has not."""
    both = pairs(released, patched, encoding)
    literal = "".join(f"\\+{ord(one):06x}" for one in CHARACTERS[encoding])
    columns = f"U&'{literal}'::{{}}"
    values = ", ".join(columns.format(kind) for kind in ("text", "varchar", "char(9)", "name"))
    (row,) = rows_of(same(both, f"SELECT {values}, -42::int4, 42::int8, 42::int2"))
    assert row
    if encoding not in {"UTF8", "SQL_ASCII", "GB18030"}:
        said = same(both, "SELECT 'a'::text, U&'\\+010348'::text, 1")
        assert b"E" in [kind for kind, _ in said]
    for wire in both:
        wire.close()


@pytest.mark.parametrize(
    ("server", "client", "text"),
    [
        ("EUC_JP", "SJIS", "日本語"),
        ("EUC_JP", "UTF8", "日本語"),
        ("LATIN1", "UTF8", "äßé"),
        ("KOI8R", "WIN866", "привет"),
    ],
)
def test_texts_of_databases_in_other_encodings(
    released: RealServer, patched: RealServer, server: str, client: str, text: str
) -> None:
    for one in (released, patched):
        wire = Wire(one)
        name = f"in_{server}_for_{client}".lower()
        wire.query(f"CREATE DATABASE {name} ENCODING '{server}' LOCALE 'C' TEMPLATE template0".encode())
        wire.close()
    both = pairs(released, patched, client, name)
    codec = {"SJIS": "shift_jis", "UTF8": "utf-8", "WIN866": "cp866"}[client]
    (row,) = rows_of(same(both, f"SELECT '{text}'::text, '{text}'::char(9), 7".encode(codec)))
    assert text.encode(codec) in row
    for wire in both:
        wire.close()


def test_a_zero_byte_that_no_text_should_have_ends_it(released: RealServer, patched: RealServer) -> None:
    """A function in C could make one; a cast without a function does."""
    both = pairs(released, patched)
    for wire in both:
        assert wire.query(b"CREATE CAST (bytea AS text) WITHOUT FUNCTION")[0][0] == b"C"
    (row,) = rows_of(same(both, "SELECT '\\x410042'::bytea::text, 1"))
    assert row == b"\x00\x02" + b"\x00\x00\x00\x01A" + b"\x00\x00\x00\x011"
    for wire in both:
        wire.query(b"DROP CAST (bytea AS text)")
        wire.close()
