"""What is compared has to be the same work: what is not, is refused in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.golden.synthetic import READ_ONLY, READ_WRITE, experiment
from tests.golden.synthetic_clients import experiment as of_clients
from tests.golden.synthetic_steps import experiment as of_ten_steps
from tests.golden.synthetic_workers import experiment as of_degrees

from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.experiment import DesignKind, Experiment, Part
from pgdyno.model.experiments.workload import Cell, ResetPolicy
from pgdyno.model.variants.variant import Variant
from pgdyno.results.machines.same_experiment import common_part

SAME_COMMAND = "HINT:  run the same command with the same options on both machines"
ONE = replace(experiment(), generators={READ_ONLY: "driver", READ_WRITE: "driver"})


def other(**changes: Any) -> Experiment:
    return replace(ONE, **{"id": "other", **changes})


def refusal(a: Experiment, b: Experiment) -> str:
    with pytest.raises(UsageError) as caught:
        common_part(a, b)
    return str(caught.value)


def test_the_same_experiment_on_two_machines_has_everything_in_common() -> None:
    common = common_part(ONE, other(host={}, server={}, notes=("elsewhere",)))
    assert common.workloads == (READ_ONLY, READ_WRITE)
    assert common.variants == ("default", "plan")
    assert (common.left_out, common.unknown) == ((), ())


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        (
            {"scales": {READ_ONLY: 4, READ_WRITE: 400}},
            f"{READ_WRITE}: scale of the data set: 4 on A, 400 on B",
        ),
        (
            {"generators": {READ_ONLY: "driver", READ_WRITE: "sysbench"}},
            f"{READ_WRITE}: load generator: driver on A, sysbench on B",
        ),
        (
            {"operations": {READ_WRITE: "rows"}},
            f"{READ_WRITE}: what is counted: transactions on A, rows on B",
        ),
        (
            {"reset_policies": {READ_ONLY: ResetPolicy.KEEP, READ_WRITE: ResetPolicy.KEEP}},
            f"{READ_WRITE}: data between rounds: restore on A, keep on B",
        ),
        (
            {"design": replace(ONE.design, clients=8)},
            f"{READ_ONLY}: clients: 4 on A, 8 on B; {READ_WRITE}: clients: 4 on A, 8 on B",
        ),
        (
            {"cells": {READ_ONLY: Cell(READ_ONLY, 1 << 30, 4)}},
            f"{READ_ONLY}: cell: none on A, {READ_ONLY}, 1\xa0GB on B",
        ),
    ],
)
def test_another_workload_of_the_same_name_is_refused(changes: dict[str, Any], what: str) -> None:
    assert refusal(ONE, other(**changes)) == (
        f"A and B did not run the same workload\nDETAIL:  {what}\n{SAME_COMMAND}"
    )


def test_steps_of_another_size_are_refused() -> None:
    one = replace(of_ten_steps(), options={"preset": "quick"})
    said = refusal(one, replace(one, id="other", options={"preset": "ax162-s"}))
    assert said == (
        f"A and B did not run the same workload\nDETAIL:  --preset: quick on A, ax162-s on B\n{SAME_COMMAND}"
    )


@pytest.mark.parametrize(
    ("of_a", "of_b", "what"),
    [
        (
            {"query": "SELECT 1"},
            {"query": "SELECT count(*) FROM orders"},
            "--query: SELECT 1 on A, SELECT count(*) FROM orders on B",
        ),
        ({"writes": ""}, {}, "--writes: given on A, not given on B"),
        ({"preset": "page-cache"}, {"preset": "disk"}, "--preset: page-cache on A, disk on B"),
        ({}, {"preset": "disk"}, "--preset: not given on A, disk on B"),
        ({"protocol": "simple"}, {"protocol": "extended"}, "--protocol: simple on A, extended on B"),
        (
            {"query": "SELECT 1", "preset": "disk"},
            {"query": "SELECT 2", "preset": "page-cache"},
            "--preset: disk on A, page-cache on B; --query: SELECT 1 on A, SELECT 2 on B",
        ),
    ],
)
def test_grids_that_were_asked_for_other_work_are_refused(
    of_a: dict[str, str], of_b: dict[str, str], what: str
) -> None:
    one, two = (replace(of_degrees(), options={**options, "budget": "60s"}) for options in (of_a, of_b))
    assert refusal(one, replace(two, id="other")) == (
        f"A and B did not run the same workload\nDETAIL:  {what}\n{SAME_COMMAND}"
    )


def test_how_long_is_measured_and_which_cells_there_are_makes_no_other_workload() -> None:
    one = replace(of_degrees(), options={"query": "SELECT 1", "budget": "60s", "clients": "2"})
    two = replace(
        one,
        id="other",
        options={"query": "SELECT 1", "budget": "900s", "workload": "count", "accept": ""},
        workloads=one.workloads[:5],
    )
    common = common_part(one, two)
    assert common.workloads == one.workloads[:5]
    assert common.left_out == tuple(f"{name}: only A ran it" for name in one.workloads[5:])


def test_where_it_runs_and_how_arms_are_paired_makes_no_other_workload() -> None:
    design = replace(ONE.design, is_isolated=False, kind=DesignKind.ALTERNATING, slice_s=10.0, rounds=9)
    assert common_part(ONE, other(design=design)).workloads == (READ_ONLY, READ_WRITE)


def test_without_a_common_workload_both_are_named() -> None:
    assert refusal(ONE, replace(of_clients(), id="other")) == (
        "A and B have no workload in common\n"
        f"DETAIL:  A ran {READ_ONLY}, {READ_WRITE}; B ran pgbench-select-1, pgbench-select-2, "
        "pgbench-select-3, pgbench-select-4, pgbench-select-6, pgbench-select-8\n"
        f"{SAME_COMMAND}"
    )


def test_variants_are_the_same_if_their_settings_are() -> None:
    plan = Variant("plan", {"shared_buffers": "4GB"})
    common = common_part(ONE, other(variants=(Variant("default"), plan, Variant("more"))))
    assert common.variants == ("default",)
    settings = "shared_buffers 2GB and 4GB, max_wal_size 8GB and unchanged, work_mem 16MB and unchanged"
    assert common.left_out == (
        f"variant plan has different settings on A and B: {settings}",
        "variant more: only B measured it",
    )
    assert refusal(ONE, other(variants=(plan,))).startswith(
        "A and B have no variant in common\nDETAIL:  variant plan has different settings on A and B: shared_b"
    )
    assert refusal(ONE, other(variants=(Variant("mine"),))) == (
        "A and B have no variant in common\nDETAIL:  A measured default, plan; B measured mine\n"
        "HINT:  measure variants of the same names and settings on both machines"
    )


def test_workloads_of_only_one_are_left_out_and_named() -> None:
    assert common_part(ONE, other(workloads=(READ_ONLY,))).left_out == (f"{READ_WRITE}: only A ran it",)


def test_what_is_not_recorded_is_unknown_and_not_equal() -> None:
    unknown = common_part(experiment(), replace(experiment(), id="other", scales={READ_ONLY: 4})).unknown
    assert [(one.subject, one.a, one.b) for one in unknown] == [
        (f"{READ_ONLY}: load generator", None, None),
        (f"{READ_WRITE}: scale of the data set", "4", None),
        (f"{READ_WRITE}: load generator", None, None),
    ]
    scripts: dict[str, Any] = {
        "workloads": ("scripts",),
        "scales": {"scripts": 1},
        "generators": {"scripts": "pgbench"},
        "reset_policies": {"scripts": ResetPolicy.KEEP},
    }
    (text,) = common_part(replace(ONE, **scripts), other(**scripts)).unknown
    assert (text.subject, text.reason) == ("scripts: the scripts' text", "it is not recorded")


def test_an_experiment_is_not_compared_with_itself_or_without_rounds() -> None:
    assert refusal(ONE, ONE) == (
        f"A and B are the same experiment: {ONE.id}\n"
        "HINT:  name two files, or the ids of two experiments: see pgdyno report --list"
    )
    assert refusal(ONE, other(blocks=())) == "B has no results: other did not complete its first round"
    part = Part("part-1", DesignKind.DUET, 5, ("default", "plan"), ())
    assert refusal(other(parts=(part,)), ONE) == (
        "A combines several experiments and has no rounds of its own\nHINT:  compare one of them: part-1"
    )
