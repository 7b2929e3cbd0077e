"""What a grid with one variant says about clients, on a curve whose law is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic_clients import CLIENTS, CONTENTION, CROSSTALK, experiment, rate

from pgdyno.measure.verdicts.scaling import CurveKnee, knees, scaling_curves
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.scaling import Knee
from pgdyno.model.variants.variant import Variant

TRUE_KNEE = next(n for n in CLIENTS if rate(n) >= 0.95 * max(map(rate, CLIENTS)))


def test_the_knee_and_the_law_are_those_of_the_curve() -> None:
    """By hand: 21,750 at 4, 22,500 at 6, 21,302 at 8 clients; 95 % of the highest is 21,375."""
    (curve,) = scaling_curves(experiment())
    assert TRUE_KNEE == 4
    assert curve.scaling.knee == Knee(4, 4, 0.05)
    assert curve.scaling.law == "USL"
    law = curve.scaling.laws[1]
    assert law.contention.low <= CONTENTION <= law.contention.high
    assert law.crosstalk is not None
    assert law.crosstalk.low <= CROSSTALK <= law.crosstalk.high
    assert [one.level for one in curve.scaling.levels] == list(CLIENTS)
    assert all(one.blocks == 8 for one in curve.scaling.levels)


def test_the_clients_share_is_that_of_both_their_cpu_time() -> None:
    (curve,) = scaling_curves(experiment())
    assert curve.client_shares == pytest.approx(dict.fromkeys(CLIENTS, 0.25))


def test_knees_are_named_by_load_and_size() -> None:
    assert knees(experiment()) == (CurveKnee("pgbench-select, 591\xa0MB", "clients", Knee(4, 4, 0.05)),)


def test_blocks_that_are_void_do_not_count() -> None:
    of = experiment()
    void = tuple(
        replace(block, void="stolen") if block.workload.endswith("-8") and block.round < 3 else block
        for block in of.blocks
    )
    (curve,) = scaling_curves(replace(of, blocks=void))
    assert [one.blocks for one in curve.scaling.levels] == [8, 8, 8, 8, 8, 5]


def _two_variants(of: Experiment) -> Experiment:
    return replace(of, variants=(*of.variants, Variant("other")))


def _two_levels(of: Experiment) -> Experiment:
    return replace(of, blocks=tuple(b for b in of.blocks if b.workload[-1] in "12"))


def test_with_several_variants_the_question_is_another() -> None:
    of = _two_variants(experiment())
    assert scaling_curves(of) == ()
    assert knees(of) == ()


@pytest.mark.parametrize(
    "of", [_two_levels(experiment()), experiment(rounds=4)], ids=["two levels", "four rounds"]
)
def test_a_curve_of_which_too_little_counts_is_named_without_a_knee(of: Experiment) -> None:
    assert scaling_curves(of) == ()
    assert knees(of) == (CurveKnee("pgbench-select, 591\xa0MB", "clients", None),)
