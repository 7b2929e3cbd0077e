"""A patched server sorts as a released one does, and gives up short keys where they are all alike."""

from __future__ import annotations

import pytest
from tests.fix_servers import RealServer
from tests.integration.patches.wire import PATCHED_BUILD, Wire, rows_of

pytestmark = PATCHED_BUILD

TRACED = b"SET trace_sort = on; SET client_min_messages = log; SET max_parallel_workers_per_gather = 0"
ABORTED = b"varstr_abbrev: aborted abbreviation at "
SORT = "SELECT count(*) FROM (SELECT {} AS t FROM generate_series(1, {}) AS i ORDER BY t) AS s"


def notices(server: RealServer, statement: str) -> list[bytes]:
    """Return what a server says about the sorts of a statement."""
    wire = Wire(server)
    wire.query(TRACED)
    said = [content for kind, content in wire.query(statement.encode()) if kind == b"N"]
    wire.close()
    return [part[1:] for content in said for part in content.split(b"\0") if part[:1] == b"M"]


@pytest.mark.parametrize("server", ["released", "patched"])
def test_keys_that_begin_alike_are_not_abbreviated_any_more(
    server: str, request: pytest.FixtureRequest
) -> None:
    found = request.getfixturevalue(server)
    said = notices(found, SORT.format("'the same first eight' || i", 10_000))
    assert [one for one in said if one.startswith(ABORTED + b"160 ")]
    assert not [one for one in notices(found, SORT.format("md5(i::text)", 10_000)) if one.startswith(ABORTED)]


@pytest.mark.parametrize("server", ["released", "patched"])
def test_equal_keys_are_compared_as_bytes_and_not_given_up(
    server: str, request: pytest.FixtureRequest
) -> None:
    """Short keys are worth it where the whole ones are as few: a comparison of equal bytes is cheap."""
    said = notices(request.getfixturevalue(server), SORT.format("'the same' || (i % 2)", 10_000))
    assert [one for one in said if one.startswith(b"varstr_abbrev: abbrev_distinct after 160: ")]
    assert not [one for one in said if one.startswith(ABORTED)]


def test_a_sort_of_a_hundred_rows_counts_nothing(patched: RealServer) -> None:
    """At 160 keys, the first time that they are looked at, 60 of them have been counted."""
    (said,) = (
        one
        for one in notices(patched, SORT.format("md5(i::text)", 200))
        if one.startswith(b"varstr_abbrev: abbrev_distinct after 160: ")
    )
    distinct = float(said.split()[4])
    assert 50 < distinct < 70  # HyperLogLog's estimate with 1024 registers


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 160, 161, 3000, 20_000])
@pytest.mark.parametrize(
    "key",
    [
        "md5(i::text)", "'the same first eight' || i", "(i % 7)::text",
        "nullif(md5((i % 500)::text), md5('3'))", "md5(i::text)::char(40)", "decode(md5(i::text), 'hex')",
        "md5(i::text)::name", "repeat(md5(i::text), 9)",
    ],
)  # fmt: skip
def test_the_order_is_the_same(released: RealServer, patched: RealServer, key: str, count: int) -> None:
    statement = f"SELECT i, {key} AS t FROM generate_series(1, {count}) AS i ORDER BY t, i"  # noqa: S608
    found = []
    for server in (released, patched):
        wire = Wire(server)
        found.append(rows_of(wire.query(statement.encode())))
        wire.close()
    assert len(found[0]) == count
    assert found[0] == found[1]
