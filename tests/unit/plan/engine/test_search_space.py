"""The space of a search, from a plan and from what levers try."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.fix_settings import host_of, server_of

from pgdyno.base.facts import Fact
from pgdyno.model.plans.plan import PER_APPLICATION, Effect, Layer
from pgdyno.model.tuning.tuning import Dimension, Space, Trial, TrialRound, TrialState
from pgdyno.model.variants.durability import DURABILITY_LOCK
from pgdyno.plan.engine.planner import PlanRequest, make_plan
from pgdyno.plan.engine.search_space import lines_in_place, space_in_place, space_of
from pgdyno.plan.levers import load
from pgdyno.postgres.statements import CommitGrouping
from pgdyno.tune.search.samplers import load as load_samplers
from pgdyno.tune.tuner import shorten

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


SERVER = server_of(changes={"wal_buffers": "2MB"})
PLAN = make_plan(host_of(), SERVER, PlanRequest())
WHOLE = space_of(PLAN, SERVER, (Layer.APPLICATION,), load(), {})


def keys_of(space: Space) -> set[str]:
    """Return every setting that a point of the space may have."""
    brought = {key for one in space.dimensions for key in one.brings}
    return {*(one.key for one in space.dimensions), *brought, *space.kept}


def test_a_reload_brings_all_of_it_into_force() -> None:
    found = space_in_place(WHOLE, SERVER, may_restart=False)
    contexts = {SERVER.settings[key].context for key in keys_of(found.space)}
    assert contexts <= {"sighup", "superuser", "user"}
    assert "random_page_cost" in keys_of(found.space)
    assert "shared_buffers" in found.left_out


def test_what_suits_one_application_is_never_set_for_a_server() -> None:
    found = space_in_place(WHOLE, SERVER, may_restart=True)
    assert not PER_APPLICATION & keys_of(found.space)
    assert set(found.per_application) == {"plan_cache_mode"}


def test_planned_values_that_take_a_restart_are_one_dimension() -> None:
    found = space_in_place(WHOLE, SERVER, may_restart=True).space
    restarting = [one for one in found.dimensions if SERVER.settings[one.key].needs_restart]
    planned = {line.change.key for line in PLAN.lines if line.change.effect is Effect.RESTART}
    assert len(planned) > 1
    assert len(restarting) == 1
    together = {restarting[0].key, *restarting[0].brings}
    assert {key for key in together if SERVER.settings[key].needs_restart} == planned & keys_of(WHOLE)
    assert restarting[0].values == (restarting[0].planned,)


def test_every_setting_of_it_has_a_line_with_its_effect() -> None:
    found = space_in_place(WHOLE, SERVER, may_restart=True).space
    lines = {line.change.key: line for line in lines_in_place(found, PLAN, SERVER, load())}
    assert lines.keys() == keys_of(found)
    assert all(
        (line.change.effect is Effect.RESTART) == SERVER.settings[key].needs_restart
        for key, line in lines.items()
    )
    assert all(line.change.lever in load() for line in lines.values())


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("command line", "on the server's command line"),
        ("environment variable", "by an environment variable of the server"),
        ("user", "for this role (ALTER ROLE)"),
        ("global", "for all roles (ALTER ROLE ALL)"),
        ("client", "by this connection's options"),
    ],
)
def test_what_others_have_set_where_alter_system_does_not_reach_is_left_out(source: str, said: str) -> None:
    theirs = {key: replace(SERVER.settings[key], source=source) for key in ("work_mem", "shared_buffers")}
    server = replace(SERVER, settings={**SERVER.settings, **theirs})
    assert {"work_mem", "shared_buffers"} <= keys_of(WHOLE)
    found = space_in_place(WHOLE, server, may_restart=True)
    assert found.of_others == {"work_mem": said, "shared_buffers": said}
    assert not theirs.keys() & (keys_of(found.space) | set(found.left_out))
    assert "random_page_cost" in keys_of(found.space)
    assert not space_in_place(WHOLE, SERVER, may_restart=True).of_others
