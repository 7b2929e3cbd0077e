"""The space of a search, from a plan and from what levers try."""

from __future__ import annotations

import pytest
from tests.fix_settings import host_of, server_of

from pgdyno.base.facts import Fact
from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.space import Dimension, Space
from pgdyno.model.tuning.tuning import Trial, TrialRound, TrialState
from pgdyno.model.variants.durability import DURABILITY_LOCK
from pgdyno.plan.engine.planner import PlanRequest, make_plan
from pgdyno.plan.engine.search_space import space_of
from pgdyno.plan.levers import load
from pgdyno.postgres.statements import CommitGrouping
from pgdyno.tune.search.samplers import load as load_samplers
from pgdyno.tune.search.shortening import shorten

SLOW_DISK = CommitGrouping("sysbench-read-write", clients=16, commits=1200, flushes=1000, flush_us=1501.0)


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


def linked() -> Space:
    """Return the space of a server where commits may wait for each other, on a host of 64 CPUs."""
    server, commits = server_of(), Fact(SLOW_DISK, "counted under load")
    plan = make_plan(host_of(cpus=64), server, PlanRequest(commits=commits))
    return space_of(plan, server, (Layer.APPLICATION,), load(), {})


PAIRS = [("commit_delay", "commit_siblings", "8"), ("max_worker_processes", "max_parallel_workers", "64")]


@pytest.mark.parametrize(("leader", "led", "value"), PAIRS)
def test_settings_that_count_only_together_are_one_dimension(leader: str, led: str, value: str) -> None:
    found = linked()
    assert led not in [one.key for one in found.dimensions]
    assert found.whole({leader: found.plan[leader]}).get(led) == value
    assert led not in found.whole({})


@pytest.mark.parametrize("sampler", ["guided", "random"])
def test_no_candidate_has_one_setting_without_the_other(sampler: str) -> None:
    found, seen = linked(), set[bool]()
    asked = load_samplers()[sampler].make(found, 3)
    for number in range(1, 31):
        point = asked.ask()
        whole = found.whole(point)
        for leader, led, _ in PAIRS:
            assert (leader in whole) == (led in whole)
        seen.add("commit_siblings" in whole)
        asked.tell(Trial(number, point, None, (TrialRound(-0.1, -0.1, 0.0),), TrialState.LOST))
    assert seen == {True, False}


def test_both_are_left_out_together() -> None:
    found = linked()
    measured = list[set[str]]()

    def measure(_winner: object, rest: dict[str, str]) -> list[float]:
        measured.append(set(found.whole(rest)))
        return [0.0 if "commit_delay" in rest else -1.0]

    list(shorten(found.plan, list(found.plan), measure, 0.001, lambda _: ""))  # type: ignore[arg-type]
    assert any("commit_delay" not in one for one in measured)
    assert all(("commit_delay" in one) == ("commit_siblings" in one) for one in measured)
