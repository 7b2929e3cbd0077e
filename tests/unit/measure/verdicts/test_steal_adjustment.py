"""Stolen time as a covariate: what recorded experiments give, and where nothing may be adjusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pgdyno.host.cpu_idling import POLL_NS
from pgdyno.measure.verdicts.steal_adjustment import Adjustment, adjustments, touching_wakeups
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, DesignKind, Experiment
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.levers import load as load_levers
from pgdyno.store.bundle import check_bundle

RECORDED = Path(__file__).parents[3] / "fixtures/bundles/earlier/tuned-vs-default.zip"
STOLEN = "50.0% of the CPU time was stolen by the hypervisor (limit 10%)"


def experiment(
    rounds: int = 8,
    settings: Mapping[str, str] | None = None,
    spread: float = 0.3,
    more_for_b: float = 0.0,
    *,
    kind: DesignKind = DesignKind.ALTERNATING,
) -> Experiment:
    """Return trials of a and b, b 10 % faster; stolen time costs 4 % of throughput for each percent."""
    random = np.random.default_rng(rounds)
    blocks = []
    for r in range(rounds):
        arms = []
        for name, effect, more in (("a", 0.0, 0.0), ("b", math.log(1.1), more_for_b)):
            share = 0.05 + more + spread * float(random.random())
            tps = math.exp(7 + effect - 4 * share + 0.01 * float(random.standard_normal()))
            arms.append(ArmBlock(name, 1, 1.0, {"throughput_tps": tps}, audit={"steal_share": share}))
        blocks.append(Block("w", r, 0, 0, tuple(arms)))
    return Experiment(
        id="x",
        name="x",
        question="",
        created="",
        pgdyno_version="",
        design=Design(kind=kind),
        variants=(Variant("a"), Variant("b", settings or {})),
        baseline="a",
        workloads=("w",),
        reset_policies={},
        blocks=tuple(blocks),
    )


def the_only(of: Experiment) -> Adjustment:
    (found,) = adjustments(of)
    return found


def test_a_recorded_experiment_gives_what_its_review_calculated() -> None:
    recorded = check_bundle(RECORDED).experiment
    assert recorded is not None
    _, writing = adjustments(recorded)
    assert (writing.workload, writing.trials, writing.reason) == ("sysbench-read-write", 25, "")
    found = {one.variant: one.interval for one in writing.effects if one.metric == "throughput_tps"}
    percent = {
        name: [round(100 * (ratio - 1)) for ratio in (bounds.point, bounds.low, bounds.high)]
        for name, bounds in found.items()
    }
    assert percent["application"] == [23, 14, 33]
    assert percent["plan"] == [35, 24, 48]


def test_the_planted_effect_is_found_beside_a_verdict_that_cannot_see_it() -> None:
    found = the_only(experiment())
    (one,) = found.effects
    assert (one.metric, one.variant) == ("throughput_tps", "b")
    assert one.interval.low < 1.1 < one.interval.high
    assert one.interval.half_width < 0.06
    assert 0.05 <= found.lowest < found.highest <= 0.35


def test_trials_that_do_not_count_for_stolen_time_alone_tell_as_well() -> None:
    of = experiment()
    first = of.blocks[0]
    for reason, trials in ((STOLEN, 16), ("checkpoints differ", 14)):  # its partner is alone then
        arms = (replace(first.arms[0], void=reason), first.arms[1])
        void = replace(first, arms=arms, void=reason)
        assert the_only(replace(of, blocks=(void, *of.blocks[1:]))).trials == trials


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (
            experiment(settings={"io_method": "io_uring"}),
            "io_method changes CPU idling or wake-ups, and thereby steal time",
        ),
        (
            experiment(settings={POLL_NS: "200000"}),
            f"{POLL_NS} changes CPU idling or wake-ups, and thereby steal time",
        ),
        (
            replace(experiment(), burstable_type="t3.micro"),
            "t3.micro has CPU credits: steal time depends on earlier use",
        ),
        (experiment(5), "steal time is known for only 10 trials; at least 12 are needed"),
        (
            experiment(more_for_b=0.5, spread=0.1),
            "the steal shares of the variants differ (p = ",
        ),
    ],
    ids=["wakeups", "idling", "burstable", "few", "differs"],
)
def test_where_stolen_time_may_be_an_effect_of_the_variant_nothing_is_adjusted(
    of: Experiment, reason: str
) -> None:
    found = the_only(of)
    assert found.effects == ()
    assert found.reason.startswith(reason)


def test_where_stolen_time_hardly_varies_and_in_turns_there_is_nothing_to_say() -> None:
    assert adjustments(experiment(spread=0.01)) == ()
    assert adjustments(experiment(kind=DesignKind.DUET)) == ()
    assert adjustments(replace(experiment(), operations={"w": "rows"})) == ()


def test_what_both_have_alike_does_not_matter() -> None:
    of = experiment(settings={"io_method": "sync"})
    alike = replace(of, variants=(Variant("a", {"io_method": "sync"}), of.variants[1]))
    assert touching_wakeups(of) == ("io_method",)
    assert touching_wakeups(alike) == ()


def test_every_lever_that_touches_wakeups_is_known_here() -> None:
    levers = [module.LEVER for module in load_levers().values() if module.LEVER.touches_wakeups]
    assert levers
    for lever in levers:
        for name in (*lever.settings, *lever.files):
            path = name.replace("*", "0")
            given = replace(experiment(), variants=(Variant("a"), Variant("b", {path: "1"})))
            assert touching_wakeups(given) == (path,), lever.name
