"""What a server that counts statements is started with, and how its counters become counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.measure.statement_counting import counting, counts_between, shape, why_uncounted
from pgdyno.model.experiments.statements import UNNAMED, StatementCount
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.sampling.statement_statistics import CountedTimes

ADDED = {"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track_planning": "on"}
USUAL = "/proc/sys/vm/nr_hugepages"
LARGE = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
SMALL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"


def test_a_variants_libraries_stay() -> None:
    assert counting(Variant("a")).settings == ADDED
    found = counting(Variant("a", {"shared_preload_libraries": "auto_explain", "work_mem": "8MB"}))
    libraries = {"shared_preload_libraries": "auto_explain,pg_stat_statements"}
    assert found.settings == {**ADDED, **libraries, "work_mem": "8MB"}


@pytest.mark.parametrize(
    ("pools", "expected"),
    [
        ({SMALL: "100"}, {SMALL: "102"}),  # 3 MB take two pages of 2 MB
        ({LARGE: "4"}, {LARGE: "5"}),
        ({SMALL: "100", LARGE: "4"}, {SMALL: "102", LARGE: "4"}),
        ({SMALL: "0", LARGE: "4"}, {SMALL: "0", LARGE: "5"}),
        ({SMALL: "0"}, {SMALL: "0"}),
    ],
)
def test_the_pool_of_the_smallest_pages_gets_room(pools: dict[str, str], expected: dict[str, str]) -> None:
    assert counting(Variant("a", pools)).files == expected


def test_the_usual_pool_gets_room_too() -> None:
    text = Path("/proc/meminfo").read_text()
    (size_kb,) = (int(line.split()[1]) for line in text.splitlines() if line.startswith("Hugepagesize:"))
    assert counting(Variant("a", {USUAL: "100"})).files == {USUAL: str(100 + -(-3072 // size_kb))}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("compute_query_id", "off"),
        ("pg_stat_statements.track", "all"),
        ("pg_stat_statements.max", "100"),
        ("shared_preload_libraries", "auto_explain, pg_stat_statements"),
    ],
)
def test_variants_about_counting_are_not_counted(name: str, value: str) -> None:
    assert why_uncounted([Variant("a"), Variant("b", {name: value})]) == (
        f"b sets {name}, which decides how they are counted"
    )


def test_other_variants_are_counted() -> None:
    others = {"shared_preload_libraries": "auto_explain", "pg_stat_kcache.track": "all"}
    assert not why_uncounted([Variant("a"), Variant("b", others)])


def times(sql: str, calls: int, planning_ms: float, executing_ms: float, number: int = 1) -> CountedTimes:
    return CountedTimes(sql, calls, planning_ms, executing_ms, 2 * calls, 3 * calls, 0, 10 * calls, number)


def test_counts_are_the_increase_with_planning() -> None:
    before = {1: times("", 100, 1.0, 50.0)}
    after = {1: times("select 1", 150, 2.0, 80.0), 2: times("select 2", 7, 0.0, 3.5, 2)}
    assert counts_between(before, after, str) == {
        "select 1": StatementCount(50, 31.0, 100, 150, 500),
        "select 2": StatementCount(7, 3.5, 14, 21, 70),
    }


def test_a_statement_that_was_evicted_in_between_counts_from_zero() -> None:
    before = {1: times("", 100, 0.0, 1000.0), 2: times("", 100, 0.0, 10.0, 2)}
    after = {1: times("more calls", 150, 0.0, 10.0), 2: times("fewer calls", 40, 0.0, 20.0, 2)}
    found = counts_between(before, after, str)
    assert {name: (one.calls, one.time_ms) for name, one in found.items()} == {
        "more calls": (150, 10.0),
        "fewer calls": (40, 20.0),
    }


def test_statements_without_a_name_are_one() -> None:
    after = {1: times("a", 1, 0.0, 1.0), 2: times("b", 2, 0.0, 2.0, 2), 3: times("c", 4, 0.0, 4.0, 3)}
    found = counts_between({}, after, {"a": "first"}.get)
    assert {name: (one.calls, one.time_ms) for name, one in found.items()} == {
        "first": (1, 1.0),
        UNNAMED: (6, 6.0),
    }
    assert counts_between(after, after, str) == {}


def test_tables_that_differ_in_a_number_have_one_shape() -> None:
    assert shape("SELECT c FROM  sbtest12 WHERE id = $1") == "SELECT c FROM sbtest# WHERE id = $1"


def test_a_semicolon_at_the_end_is_no_part_of_a_shape() -> None:
    assert shape("UPDATE t SET a = $1; ") == "UPDATE t SET a = $1"
