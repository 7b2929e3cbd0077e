"""Which experiments have a comparison alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.golden.synthetic import READ_ONLY
from tests.golden.synthetic_fleet import fleet, given

from pgdyno.model.experiments.experiment import DesignKind, Experiment, Phase
from pgdyno.model.experiments.likeness import Likeness
from pgdyno.results.fleets.fleet_members import members_of
from pgdyno.results.fleets.shared_comparisons import SharedComparison, shared_comparisons


def on_reading(*experiments: Experiment) -> SharedComparison:
    found = shared_comparisons(members_of(given(experiments)))
    return next(one for one in found if one.compared.workload == READ_ONLY)


def with_plan(experiment: Experiment, **changes: Any) -> Experiment:
    default, plan = experiment.variants
    return replace(experiment, variants=(default, replace(plan, **changes)))


def test_the_same_is_shared_by_all() -> None:
    shared = on_reading(*fleet(3))
    assert shared.compared == (READ_ONLY, "default", "plan")
    assert [one.machine for one in shared.members] == ["A", "B", "C"]
    assert (shared.left_out, shared.unknown) == ((), ())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"scales": {READ_ONLY: 8}}, "scale of the data set is 8, 4 on A (on-1.zip)"),
        ({"options": {"preset": "big"}}, "--preset is big, not given on A (on-1.zip)"),
        (
            {"server": {"version_num": 170002}},
            "PostgreSQL's major version is 17, 18 on A (on-1.zip)",
        ),
    ],
)
def test_what_is_different_is_left_out_with_the_first_difference(change: dict[str, Any], reason: str) -> None:
    first, second, third = fleet(3)
    shared = on_reading(first, second, replace(third, **change))
    assert [one.machine for one in shared.members] == ["A", "B"]
    (left_out,) = shared.left_out
    assert (left_out.member.machine, left_out.reason) == ("C", reason)


def test_another_way_of_measuring_is_another_comparison() -> None:
    first, second, third = fleet(3)
    trials = replace(third, design=replace(third.design, kind=DesignKind.ALTERNATING, phase=Phase.CYCLE))
    (left_out,) = on_reading(first, second, trials).left_out
    assert left_out.reason == ("design is alternating, duet on A (on-1.zip), and 1 more difference")


def test_other_settings_are_another_comparison() -> None:
    first, second, third = fleet(3)
    larger = with_plan(third, settings={**third.variants[1].settings, "work_mem": "64MB", "jit": "off"})
    (left_out,) = on_reading(first, second, larger).left_out
    assert left_out.reason == "work_mem of plan is 64MB, 16MB on A (on-1.zip), and 1 more difference"


def test_most_machines_decide_which_comparison_it_is() -> None:
    first, second, third = fleet(3)
    settings = {"work_mem": "64MB"}
    shared = on_reading(first, with_plan(second, settings=settings), with_plan(third, settings=settings))
    assert [one.machine for one in shared.members] == ["B", "C"]
    assert [one.member.machine for one in shared.left_out] == ["A"]


def test_what_a_bundle_leaves_out_is_unknown_and_no_difference() -> None:
    first, second = fleet(2)
    hidden = with_plan(second, settings={**second.variants[1].settings, "work_mem": "********"})
    shared = on_reading(first, hidden)
    assert len(shared.members) == 2
    assert shared.unknown == ("work_mem of plan",)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
def test_what_one_does_not_know_joins_no_two_that_differ(order: tuple[int, ...]) -> None:
    unknown, older, newer = fleet(3)
    three = (
        replace(unknown, server={}),
        replace(older, server={"version_num": 170002}),
        replace(newer, server={"version_num": 180001}),
    )
    shared = on_reading(*(three[position] for position in order))
    assert {one.experiment.id for one in shared.members} == {"on-1", "on-2"}
    (left_out,) = shared.left_out
    assert left_out.member.experiment.id == "on-3"
    assert left_out.reason == f"PostgreSQL's major version is 18, 17 on {'ABC'[order.index(1)]} (on-2.zip)"
    assert shared.unknown == ("PostgreSQL's major version",)


def test_the_group_grows_beyond_a_first_that_knows_less() -> None:
    first, second, third, fourth = fleet(4)
    versions: tuple[dict[str, int], ...] = (
        {},
        {"version_num": 170002},
        {"version_num": 180001},
        {"version_num": 180002},
    )
    members = (first, second, third, fourth)
    shared = on_reading(*(replace(one, server=it) for one, it in zip(members, versions, strict=True)))
    assert [one.machine for one in shared.members] == ["A", "C", "D"]


def test_the_text_of_a_captured_workload_is_unknown() -> None:
    likeness = Likeness({"calls": 0.9}, ())
    first, second = (replace(one, likenesses={READ_ONLY: likeness}) for one in fleet(2))
    assert on_reading(first, second).unknown == ("text of the captured workload",)


def test_of_other_servers_only_the_names_are_known() -> None:
    first, second = (with_plan(one, server="server-1") for one in fleet(2))
    assert on_reading(first, second).unknown == ("server of plan",)
