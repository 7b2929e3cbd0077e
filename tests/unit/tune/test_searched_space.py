"""Values that could never be tried are not in a space."""

from __future__ import annotations

from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.tuning import Dimension, Point, Space
from pgdyno.tune.search.searching import WhyNot
from pgdyno.tune.searched_space import RefusedValue, triable

SPACE = Space(
    (
        Dimension("shared_buffers", Layer.APPLICATION, ("2", "6"), "1", planned="6"),
        Dimension("work_mem", Layer.APPLICATION, ("1", "3", "9"), "2", planned="3"),
        Dimension("temp_buffers", Layer.APPLICATION, ("8",), "1"),
    )
)


def within(limit: int) -> WhyNot:
    def why_not(point: Point) -> str:
        size = sum(int(point.get(one.key, one.found)) for one in SPACE.dimensions)
        return f"{size} is more than {limit}" if size > limit else ""

    return why_not


def values(space: Space) -> dict[str, tuple[str, ...]]:
    return {one.key: one.values for one in space.dimensions}


def test_a_value_that_is_refused_on_top_of_the_plan_is_dropped_with_its_dimension_if_it_was_the_last() -> (
    None
):
    space, refused = triable(SPACE, within(12))
    assert values(space) == {"shared_buffers": ("2", "6"), "work_mem": ("1", "3")}
    assert refused == (
        RefusedValue("work_mem", "9", "16 is more than 12"),
        RefusedValue("temp_buffers", "8", "17 is more than 12"),
    )


def test_where_all_may_be_tried_the_space_stays() -> None:
    assert triable(SPACE, within(100)) == (SPACE, ())


def test_where_the_plan_is_refused_values_are_judged_from_the_configuration_as_found() -> None:
    space, refused = triable(SPACE, within(7))
    assert values(space) == {"shared_buffers": ("2", "6"), "work_mem": ("1", "3")}
    assert [(one.key, one.value) for one in refused] == [("work_mem", "9"), ("temp_buffers", "8")]
    assert space.plan == SPACE.plan


def test_values_that_are_kept_in_all_candidates_play_no_part() -> None:
    kept = Space(SPACE.dimensions, kept={"max_wal_size": "16GB"})
    space, _ = triable(kept, within(12))
    assert space.kept == kept.kept
