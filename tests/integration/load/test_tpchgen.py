"""The data of a workload like TPC-H's on a real server, and what the queries answer from them.

Answers are held against DuckDB, which answers the same queries from tpchgen's rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from tests.fix_tpch import REASON, TPCHGEN, tpchgen
from tests.integration.tpch_servers import SMALLEST, arm_answers, connection, loaded_arm, values

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.load.tpch_tables import Filling
from pgdyno.load.tpchgen import Tpchgen
from pgdyno.measure.arenas.arm import Arm
from pgdyno.studies.bundled.tpch.queries import (
    NUMBERS,
    known_answers,
    normalised,
    query_text,
    validation_parameters,
)
from pgdyno.studies.bundled.tpch.query_parameters import COLORS
from pgdyno.studies.bundled.tpch.refresh import retail_price_cents, sparse_key

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home")]

pytest.importorskip("duckdb", reason="it answers the queries a second time: pip install duckdb")
if TPCHGEN is None:
    pytest.skip(REASON, allow_module_level=True)

from bench.tpch_answers import duckdb_answers, duckdb_rows  # noqa: E402 — it imports duckdb


@pytest.fixture(scope="module")
def arm(home: Path, pg18_bin: Path) -> Iterator[Arm]:
    with loaded_arm(pg18_bin) as started:
        yield started


def test_duckdb_gives_the_known_answers() -> None:
    assert duckdb_answers(SMALLEST) == known_answers(SMALLEST)


def test_postgresql_18_gives_the_known_answers(arm: Arm) -> None:
    assert arm_answers(arm, SMALLEST) == known_answers(SMALLEST)


def test_rows_come_in_duckdbs_order(arm: Arm, tmp_path: Path) -> None:
    other = duckdb_rows(SMALLEST, tmp_path)
    with connection(arm) as opened:
        for number in NUMBERS:
            sql = query_text(number, validation_parameters(number, SMALLEST))
            rows = opened.execute(sql.encode()).fetchall()
            found, expected = ([[*map(normalised, row)] for row in one] for one in (rows, other[number]))
            assert found == expected, f"q{number}"


def test_keys_and_statistics_are_there(arm: Arm) -> None:
    assert values(arm, "SELECT count(*) FROM pg_constraint WHERE contype = 'p' AND conrelid > 16383") == [8]
    assert values(arm, "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND convalidated") == [8]
    assert values(arm, "SELECT count(DISTINCT tablename) FROM pg_stats WHERE schemaname = 'public'") == [8]
    # COPY extends tables by many pages at a time: the last ones are empty, and never marked.
    unvacuumed = "relkind = 'r' AND relnamespace = 'public'::regnamespace AND relallvisible < relpages / 2"
    assert values(arm, f"SELECT relname FROM pg_class WHERE {unvacuumed}") == []  # noqa: S608 — ours


def test_loaded_orders_have_the_keys_that_refreshes_take_for_granted(arm: Arm) -> None:
    found = values(arm, "SELECT o_orderkey FROM orders ORDER BY 1")
    assert found == [sparse_key(place, 0) for place in range(1, 15_001)]


def test_prices_and_colors_are_those_that_values_are_drawn_from(arm: Arm) -> None:
    with connection(arm) as opened:
        prices = dict(opened.execute("SELECT p_partkey, p_retailprice FROM part").fetchall())
    assert prices == {part: Decimal(retail_price_cents(part)) / 100 for part in prices}
    assert {*values(arm, "SELECT DISTINCT unnest(string_to_array(p_name, ' ')) FROM part")} == {*COLORS}


def test_a_table_with_too_few_rows_is_no_data_set(arm: Arm) -> None:
    with connection(arm) as opened:
        opened.execute("CREATE DATABASE few")
    maker = Tpchgen(tpchgen(), list, os.environ)
    filling = Filling(10, "CREATE TABLE region (a int, b text, c text)", "", {"region": 5}, {"region": 6})
    with pytest.raises(GeneratorFailedError, match="tpchgen made 5 rows of region, not 6"):
        maker.fill(replace(arm.target(), database="few"), filling, jobs=1, report=lambda _: None)


def test_a_failing_generator_is_told_in_its_own_words(arm: Arm) -> None:
    maker = Tpchgen(Path("/bin/false"), list, os.environ)
    filling = Filling(10, "SELECT 1", "", {"region": 5}, {})
    with pytest.raises(GeneratorFailedError, match="tpchgen failed with status 1"):
        maker.fill(arm.target(), filling, jobs=1, report=lambda _: None)


def test_a_table_that_is_not_there_is_told_in_the_servers_words(arm: Arm) -> None:
    maker = Tpchgen(tpchgen(), list, os.environ)
    filling = Filling(10, "DROP TABLE IF EXISTS nothing", "ALTER TABLE nothing ADD PRIMARY KEY (a)", {}, {})
    with pytest.raises(GeneratorFailedError) as failed:
        maker.fill(arm.target(), filling, jobs=1, report=lambda _: None)
    assert failed.value.message == "could not create the tables and keys"
    assert 'relation "nothing" does not exist' in str(failed.value.detail)
