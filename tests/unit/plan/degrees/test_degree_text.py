"""A degree as text."""

from __future__ import annotations

import dataclasses
from typing import Any

from pgdyno.base.facts import Fact, Unknown
from pgdyno.plan.degrees.degree_text import degree_text, headline
from pgdyno.postgres.parallel_degree import (
    Cause,
    Degree,
    DegreeAdvice,
    DegreeStep,
    ExplainedGather,
    Gather,
    Limit,
    Pools,
    Scan,
    SizeRule,
    Table,
)

CAP = Cause(Limit.CAP, "max_parallel_workers_per_gather = 2", "4 workers without it", "SET …")
TABLE = Table("s.t", is_system=False, kind="r", is_temporary=False, pages=30_000, parallel_workers=None)


def pools(parallel: int = 0, others: int = 1) -> Pools:
    return Pools(8, 8, Fact(parallel, "pg_stat_activity"), Fact(others, "pg_stat_activity"))


def degree(**changed: Any) -> Degree:
    scan = Scan("Parallel Seq Scan", "s", "t", "t")
    gather = ExplainedGather(Gather("Gather", 2, (scan,), 3), (TABLE,), (CAP,), None, 4)
    settings = {"max_parallel_workers_per_gather": "2", "max_parallel_workers": "8"}
    usual = Degree("18.6", 2, (gather,), (CAP,), (), (TABLE,), settings, pools(), 2, None, ())
    return dataclasses.replace(usual, **changed)


def test_the_first_line_is_the_answer() -> None:
    assert headline(degree()) == "2 workers planned: max_parallel_workers_per_gather = 2 decided"
    one = dataclasses.replace(CAP, what="parallel_workers = 1 of s.t")
    assert (
        headline(degree(planned=1, causes=(one,))) == "1 worker planned: parallel_workers = 1 of s.t decided"
    )


def test_several_causes_decide_together() -> None:
    costs = Cause(Limit.SETUP_COST, "parallel_setup_cost = 1000", "", None)
    assert headline(degree(planned=0, gathers=(), causes=(CAP, costs))) == (
        "0 workers planned: max_parallel_workers_per_gather = 2 and parallel_setup_cost = 1000 decided"
    )


def test_what_was_not_found_out_has_not_decided() -> None:
    nothing = Cause(Limit.NOT_FOUND_OUT, "an undetermined limit", "", None)
    assert headline(degree(planned=0, causes=(nothing,))) == "0 workers planned: an undetermined limit"


def test_a_table_that_is_missing_has_not_decided() -> None:
    missing = Cause(Limit.NO_TABLE, "the lack of a table", "", None)
    unsafe = Cause(Limit.UNSAFE_FUNCTION, "the parallel-unsafe function s.f()", "", None)
    assert headline(degree(planned=0, causes=(missing,))) == "0 workers planned: no table is read"
    assert headline(degree(planned=0, causes=(unsafe, missing))) == (
        "0 workers planned: the parallel-unsafe function s.f() decided, and no table is read"
    )


def test_an_exhausted_pool_is_in_the_first_line() -> None:
    assert headline(degree(launchable=1, pool_limit=Limit.POOL)) == (
        "2 workers planned: max_parallel_workers_per_gather = 2 decided; 1 of them can be launched now, "
        "limited by max_parallel_workers = 8"
    )


def test_the_numbers_follow_the_answer() -> None:
    lines = degree_text(degree(notes=("one note",))).splitlines()
    assert lines[2:5] == [
        "Gather: 2 workers, Parallel Seq Scan on s.t",
        "  max_parallel_workers_per_gather = 2: 4 workers without it",
        "    to change it: SET …",
    ]
    assert "  s.t                                 30,000       not set" in lines
    assert "  all background workers              1 of 8" in lines
    assert lines[-1] == "note: one note"


def test_of_many_partitions_the_largest_are_listed() -> None:
    parts = tuple(dataclasses.replace(TABLE, name=f"s.p{pages}", pages=pages) for pages in range(1, 13))
    lines = degree_text(degree(tables=parts)).splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  s.p")]
    assert listed == [f"s.p{pages}" for pages in range(12, 2, -1)]
    assert "  and 2 smaller ones" in lines


def test_advice_says_what_was_tried() -> None:
    steps = (
        DegreeStep("SET a = 1", "here", is_tried=True),
        DegreeStep("ALTER TABLE t", "derived", is_tried=False),
    )
    text = degree_text(degree(advice=DegreeAdvice(4, steps, 4)))
    assert text.endswith(
        "To get 4 workers\n"
        "  SET a = 1;\n    -- tested; here\n"
        "  ALTER TABLE t;\n    -- derived\n"
        "  to keep a value: ALTER ROLE … SET, ALTER DATABASE … SET or ALTER SYSTEM SET\n"
        "  with the tested settings, EXPLAIN plans 4 workers\n"
    )
    untried = degree_text(degree(advice=DegreeAdvice(4, steps[1:], None)))
    assert untried.endswith(
        "  not tested with EXPLAIN: no setting has the effect of a table's storage parameter\n"
    )
    assert degree_text(degree(advice=DegreeAdvice(2, (), 2))).endswith("no change needed\n")
    blocked = degree_text(degree(advice=DegreeAdvice(2, (), None, "f() is unsafe")))
    assert blocked.endswith("No statement gives 2 workers: f() is unsafe\n")
    unknown = degree_text(degree(advice=DegreeAdvice(2, (), None, "nobody knows", is_certain=False)))
    assert unknown.endswith("No statement was found that gives 2 workers: nobody knows\n")


def test_the_pools_leave_what_is_not_in_use() -> None:
    assert pools().launchable(4) == 4
    assert pools(parallel=6).launchable(4) == 1  # 8 processes, of which 7 are in use
    assert pools(parallel=8).launchable(4) == 0
    assert (pools(others=0).narrower, pools(others=1).narrower) == (Limit.POOL, Limit.PROCESSES)
    unknown = dataclasses.replace(pools(), others_in_use=Fact(Unknown("hidden"), "pg_stat_activity"))
    assert unknown.launchable(4) is None
    assert "unknown of 8" in degree_text(degree(pools=unknown, launchable=None))


def test_the_rule_of_the_size_tells_its_steps() -> None:
    rule = SizeRule(Limit.TABLE_SIZE, 30_000, 1024, 4)
    assert (rule.from_pages, rule.next_pages) == (27_648, 82_944)
    assert SizeRule(Limit.TABLE_SIZE, 5, 0, 2).from_pages == 3
    assert SizeRule(Limit.TABLE_SIZE, 5, 1024, 0).from_pages == 0
