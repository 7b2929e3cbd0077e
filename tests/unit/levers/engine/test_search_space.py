"""The space of a search, from a plan and from what levers try."""

from __future__ import annotations

from tests.fix_settings import host_of, server_of

from pgdyno.levers import load
from pgdyno.levers.engine.planner import PlanRequest, make_plan
from pgdyno.levers.engine.search_space import space_of
from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.space import Dimension, Space
from pgdyno.model.variants.durability import DURABILITY_LOCK


def space(worth: dict[str, float] | None = None, **changes: str) -> Space:
    server = server_of(changes=changes)
    plan = make_plan(host_of(), server, PlanRequest())
    return space_of(plan, server, (Layer.APPLICATION,), load(), worth or {})


def dimension(of: Space, key: str) -> Dimension:
    return next(one for one in of.dimensions if one.key == key)


def test_the_planned_value_is_one_of_those_that_are_tried() -> None:
    found = space()
    assert found.plan
    assert all(found.plan[one.key] in one.values for one in found.dimensions if one.planned is not None)


def test_multiples_are_of_the_planned_value() -> None:
    one = dimension(space(), "shared_buffers")
    assert one.planned is not None
    assert len(one.values) == 3
    assert one.values[-1] == one.planned


def test_the_value_that_the_server_has_is_not_tried_again() -> None:
    assert "on" not in dimension(space(jit="on"), "jit").values
    assert dimension(space(jit="on"), "jit").found == "on"


def test_values_that_this_build_does_not_know_are_left_out() -> None:
    server = server_of()
    known = server.settings["wal_compression"].enumvals
    assert set(dimension(space(), "wal_compression").values) <= set(known)


def test_what_decides_about_durability_is_not_in_it() -> None:
    assert not DURABILITY_LOCK.keys() & {one.key for one in space().dimensions}


def test_what_the_profile_finds_worth_most_comes_first() -> None:
    ranked = space({"jit": 0.3, "work_mem": 0.1}, jit="on").dimensions
    assert [one.key for one in ranked[:2]] == ["jit", "work_mem"]
    assert ranked[0].worth == 0.3


def test_layers_that_are_not_searched_add_nothing() -> None:
    server = server_of()
    plan = make_plan(host_of(), server, PlanRequest(layers=()))
    assert space_of(plan, server, (), load(), {}).dimensions == ()
