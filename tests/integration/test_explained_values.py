"""Values with which a workload's statements are explained: typical ones, as the server reads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.fix_explained import DATABASE, explained, middle_of, shop_in, workload
from tests.fix_servers import RealServer

from pgdyno.store.workload_file import write_workload_file
from pgdyno.workload.capture.literals import array_text, quoted_text

pytestmark = pytest.mark.server


@pytest.fixture(scope="module", params=["pg15", "pg18"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    with shop_in(request.getfixturevalue(request.param)) as running:
        yield running


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.toml"
    write_workload_file(path, workload())
    return path


def test_one_statement_is_explained_with_its_values(server: RealServer, file: Path) -> None:
    degree = explained(server, file, "--workers", "3", "sum")["degree"]
    assert degree["planned"] == 2
    first = degree["advice"]["steps"][0]
    assert first["statement"] == "SET max_parallel_workers_per_gather = 3"
    note = degree["notes"][-1]
    assert note.startswith(f"planned with $1 = '{middle_of(server, 'amount')}', typical values")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("in-state", "$1 = E'o''r\\\\{}'"),
        ("range", "$1 = '{}', $2 = '{}'"),
        ("by-day", "$1 = '2026-02-10'"),
        ("first", "$1 = '15'"),
    ],
)
def test_values_come_from_statistics_and_from_each_other(
    server: RealServer, file: Path, name: str, shown: str
) -> None:
    degree = explained(server, file, name)["degree"]
    key = int(middle_of(server, "id"))
    ((state,),) = server.execute(
        "SELECT (most_common_vals::text::text[])[1] FROM pg_stats WHERE attname = 'state'", DATABASE
    )
    values = {"in-state": (state[-1],), "range": (key, key + 59000)}
    assert f"planned with {shown.format(*values.get(name, ()))}, " in degree["notes"][-1]
    assert degree["planned"] > 0


def test_an_array_has_values_from_all_over_the_histogram(server: RealServer, file: Path) -> None:
    ((bounds,),) = server.execute(
        "SELECT ARRAY(SELECT (histogram_bounds::text::text[])[n] FROM unnest(ARRAY[26, 51, 76]) n)"
        " FROM pg_stats WHERE attname = 'amount'",
        DATABASE,
    )
    written = "{" + ",".join(f'"{one}"' for one in bounds) + "}"
    assert f"planned with $1 = '{written}', " in explained(server, file, "some")["degree"]["notes"][-1]


@pytest.mark.parametrize(
    "text",
    ["it's", "a\\'b", "\\", "", 'say "x"', "{a,b}", "NULL", " -- $1", "/* */", "$$", "line\nbreak", "ß€𝄞"],
)
def test_constants_are_written_as_the_server_reads_them(server: RealServer, text: str) -> None:
    for conforming in ("on", "off"):
        with psycopg.connect(server.dsn) as connection:
            connection.execute(f"SET standard_conforming_strings = {conforming}".encode())
            asked = f"SELECT {quoted_text(text)}, {quoted_text(array_text([text, 'b']))}::text[]"
            row = connection.execute(asked.encode()).fetchone()
        assert row == (text, [text, "b"])
