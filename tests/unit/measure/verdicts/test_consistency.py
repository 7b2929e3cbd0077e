"""What an experiment from elsewhere may get wrong although its form is right."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.golden.synthetic import experiment
from tests.golden.synthetic_clients import experiment as of_clients
from tests.golden.synthetic_grid import experiment as of_a_grid
from tests.golden.synthetic_steps import experiment as of_ten_steps

from pgdyno.measure.verdicts.consistency import contradictions
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.variants.variant import Variant


@pytest.mark.parametrize("sound", [experiment, of_clients, of_a_grid, of_ten_steps])
def test_experiments_that_hold_together_have_no_contradictions(sound: Callable[[], Experiment]) -> None:
    assert contradictions(sound()) == ()


@pytest.mark.parametrize("name", ["", "../x", "a b", ".hidden", "a\n", "x" * 201, "<b>"])
def test_an_id_has_to_be_one_that_can_be_typed_and_that_names_files(name: str) -> None:
    (found,) = contradictions(replace(experiment(), id=name))
    assert found == f'its id "{name}" has other characters than letters, digits, ".", "_", "-"'


def test_names_have_to_be_there_once() -> None:
    twice = replace(experiment(), variants=(Variant("default"), Variant("plan"), Variant("plan")))
    assert contradictions(twice) == ('it has two variants called "plan"',)
    without = contradictions(replace(experiment(), variants=(Variant("plan"),), blocks=(), verdicts=()))
    assert without == ('its baseline "default" is not one of its variants',)
    (verdict, *_) = experiment().verdicts
    other = replace(experiment(), verdicts=(replace(verdict, workload="other"),))
    assert contradictions(other) == ('a verdict is on "plan" under "other", not both of which exist',)


def test_verdicts_are_against_a_variant() -> None:
    (verdict, *_) = experiment().verdicts
    other = replace(experiment(), verdicts=(replace(verdict, baseline="other"),))
    assert contradictions(other) == ('a verdict is against "other", which is not one of its variants',)


def test_what_was_made_to_take_hours_is_not_looked_at() -> None:
    base = experiment()
    many = replace(base, variants=tuple(Variant(f"v{n}") for n in range(200_000)))
    assert contradictions(many) == ("it has 200000 variants, more than the limit of 1000",)
    workloads = tuple(f"w{n}" for n in range(1001))
    assert contradictions(replace(base, workloads=workloads)) == (
        "it has 1001 workloads, more than the limit of 1000",
    )


def test_blocks_have_to_be_of_the_experiment_and_their_figures_finite() -> None:
    base = experiment()
    block = base.blocks[0]
    arm = block.arms[0]
    name = f"block 1 of round 1 of {block.workload}"

    def of(**changes: object) -> tuple[str, ...]:
        return contradictions(replace(base, blocks=(replace(block, **changes),)))  # type: ignore[arg-type]

    assert contradictions(replace(base, blocks=(block, block))) == (f"{name} exists twice",)
    assert of(workload="w") == ("block 1 of round 1 of w has an unknown workload",)
    assert of(started_ns=1 << 63) == (f"{name} has an impossible number or time",)
    assert of(round=-1) == (f"block 1 of round 0 of {block.workload} has an impossible number or time",)
    assert of(arms=(replace(arm, variant="x"),)) == (
        f'{name}: it has an arm "x", which is not one of the variants',
    )
    assert of(arms=(replace(arm, values={"throughput_tps": math.inf}),)) == (
        f"{name}: throughput_tps of default is not finite",
    )
    assert of(arms=(replace(arm, running_s=math.nan),)) == (f"{name}: running_s of default is not finite",)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"values": {"throughput_tps": -12.5}}, "throughput_tps of default is -12.5, below 0"),
        ({"values": {"throughput_tps": math.nan}}, "throughput_tps of default is not finite"),
        (
            {"values": {"throughput_tps": 0.0}, "transactions": 7},
            "throughput_tps of default is 0, of 7 transactions",
        ),
        ({"values": {"latency_ms_p99": -0.1}}, "latency_ms_p99 of default is -0.1, below 0"),
        ({"running_s": -3.0}, "running_s of default is -3, below 0"),
        ({"transactions": -1}, "transactions of default is -1, below 0"),
    ],
)
def test_figures_have_to_be_possible(changes: dict[str, Any], what: str) -> None:
    base = of_clients()
    block = base.blocks[0]
    arms = (replace(block.arms[0], **changes),)
    name = f"block 1 of round 1 of {block.workload}"
    assert contradictions(replace(base, blocks=(replace(block, arms=arms),))) == (f"{name}: {what}",)


def test_where_nothing_was_completed_a_rate_is_0_and_counters_may_go_back() -> None:
    base = experiment()
    block = base.blocks[0]
    nothing = {"throughput_tps": 0.0, "minor_faults_per_transaction": -1.0}
    arms = (replace(block.arms[0], transactions=0, values=nothing),)
    assert contradictions(replace(base, blocks=(replace(block, arms=arms),))) == ()


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, math.nan])
def test_a_design_has_to_be_one(level: float) -> None:
    base = experiment()
    assert contradictions(replace(base, design=replace(base.design, level=level))) == (
        f"the level of its design is {level}",
    )


@pytest.mark.parametrize(("low", "high"), [(0.0, 2.0), (1.2, 1.0), (math.nan, 2.0), (0.5, math.inf)])
def test_intervals_have_to_be_those_of_ratios(low: float, high: float) -> None:
    base = experiment()
    first = replace(base.verdicts[0], interval=Interval(low, 1.1, high, 0.95))
    assert contradictions(replace(base, verdicts=(first,))) == (
        f"the interval of {first.metric} under {first.workload} is not that of a ratio",
    )


def test_of_many_contradictions_the_first_are_listed() -> None:
    base = experiment()
    found = contradictions(replace(base, workloads=("w",), verdicts=()))
    assert len(found) == 9
    assert found[-1] == "and 16 more"
