"""The rules for the number of workers; numbers by hand, and the study's own of 9.6."""

from __future__ import annotations

import pytest

from pgdyno.postgres.planner.parallel_plan import threshold_for, workers_by_children, workers_by_size

GIB_PAGES = 131072  # of 8 kB
DEFAULT = 1024  # 8 MB


@pytest.mark.parametrize(
    ("pages", "workers"),
    [
        (0, 0),
        (1023, 0),
        (1024, 1),
        (3071, 1),
        (3072, 2),
        (9215, 2),
        (9216, 3),
        (27648, 4),
        (82944, 5),
        (248832, 6),
        (746496, 7),
        (11 * GIB_PAGES, 7),  # the 11 GB of the study: a first try stuck near it
        (90 * GIB_PAGES, 9),  # 6,718,464 pages are the ninth step
    ],
)
def test_one_worker_from_the_threshold_and_one_more_per_tripling(pages: int, workers: int) -> None:
    assert workers_by_size(pages, DEFAULT) == workers


def test_a_threshold_of_zero_counts_as_one_page() -> None:
    assert [workers_by_size(pages, 0) for pages in (0, 1, 2, 3, 9, 26, 27)] == [1, 1, 1, 2, 3, 3, 4]


def test_even_the_smallest_child_gets_a_worker() -> None:
    assert workers_by_size(1, DEFAULT, is_child=True) == 1
    assert workers_by_size(3072, DEFAULT, is_child=True) == 2


def test_tripling_ends_before_the_number_overflows() -> None:
    """PostgreSQL keeps the step in 32 bits: from 1 it is tripled 19 times, to 3^19 = 1,162,261,467."""
    assert workers_by_size(2**32 - 2, 0) == 20


@pytest.mark.parametrize(
    ("pages", "workers", "threshold"),
    [(1000, 1, 1000), (1000, 3, 111), (1000, 7, 1), (1000, 8, None), (0, 1, None), (1000, 0, None)],
)
def test_the_threshold_for_a_number_gives_that_number(
    pages: int, workers: int, threshold: int | None
) -> None:
    assert threshold_for(pages, workers) == threshold
    if threshold is not None:
        assert workers_by_size(pages, threshold) == workers


def test_a_parallel_append_takes_the_logarithm_of_its_children_and_one() -> None:
    assert [workers_by_children(count) for count in (1, 2, 3, 4, 5, 8, 1000)] == [1, 2, 2, 3, 3, 4, 10]
