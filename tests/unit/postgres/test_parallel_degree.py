"""The rule of sizes: one worker from the threshold, one more for each tripling."""

from __future__ import annotations

import pytest

from pgdyno.postgres.parallel_degree import Limit, Scan, SizeRule


@pytest.mark.parametrize(
    ("workers", "from_pages", "next_pages"),
    [(0, 0, 1024), (1, 1024, 3072), (2, 3072, 9216), (3, 9216, 27648)],
)
def test_each_worker_takes_three_times_as_many_pages(workers: int, from_pages: int, next_pages: int) -> None:
    rule = SizeRule(Limit.TABLE_SIZE, None, 1024, workers)
    assert (rule.from_pages, rule.next_pages) == (from_pages, next_pages)


def test_a_relation_is_named_with_its_schema() -> None:
    assert Scan("Seq Scan", "public", "orders", "o").relation == "public.orders"
