"""Experiments that lead on from each other; throughputs are made up so that every ratio is known by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from pgdyno.experiments.composition import parts_of, product_verdicts
from pgdyno.model.experiment import ArmBlock, Block, Design, DesignKind, Experiment
from pgdyno.model.variant import Variant
from pgdyno.model.verdict import Decision, Verdict

WORKLOAD = "sysbench-read-only"
NOISE = (0.99, 1.01, 1.0, 1.02, 0.98)  # a round's own factor, on every arm but the baseline
LOUD = (0.5, 1.6, 1.0, 1.4, 0.6)


def measured(
    name: str,
    throughputs: Mapping[str, float],
    noise: Sequence[float] = NOISE,
    kind: DesignKind = DesignKind.DUET,
) -> Experiment:
    """Return an experiment whose arms have these throughputs, but for noise; the first is the baseline."""
    baseline = next(iter(throughputs))
    blocks = tuple(
        Block(
            WORKLOAD, round_, 0, 0,
            tuple(
                ArmBlock(arm, 1, 1.0, {"throughput_tps": tps * (1.0 if arm == baseline else factor)})
                for arm, tps in throughputs.items()
            ),
        )
        for round_, factor in enumerate(noise)
    )  # fmt: skip
    return Experiment(
        id=name, name=name, question="", created="", pgdyno_version="", design=Design(kind=kind, rounds=5),
        variants=tuple(Variant(arm) for arm in throughputs), baseline=baseline, workloads=(WORKLOAD,),
        reset_policies={}, blocks=blocks,
    )  # fmt: skip


def throughput(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.metric == "throughput_tps"]


def mean_log(factors: Sequence[float]) -> float:
    return sum(map(math.log, factors)) / len(factors)


APPLICATION = measured("1", {"default": 100.0, "application": 110.0, "pgtune": 400.0})
SYSTEM = measured("2", {"application": 105.0, "application+system": 105.0}, LOUD, DesignKind.ALTERNATING)
BUILD = measured("3", {"application+system": 90.0, "plan": 120.0})
ENDS = ("application", "application+system", "plan")


def test_every_variant_stands_against_the_one_before_it() -> None:
    one = measured("1", {"default": 100.0, "application": 110.0, "plan": 143.0, "pgtune": 400.0})
    (part,) = parts_of([one], [("default", "application", "plan")])
    assert (part.experiment, part.kind, part.rounds) == ("1", DesignKind.DUET, 5)
    first, second = throughput(part.verdicts)
    assert (first.variant, first.baseline, second.variant, second.baseline) == (
        "application", "default", "plan", "application",
    )  # fmt: skip
    assert first.effect == pytest.approx(1.1 * math.exp(mean_log(NOISE)))
    assert first.decision is Decision.BETTER
    assert second.effect == pytest.approx(1.3)  # in every round: there is no noise to judge it by
    assert second.decision is Decision.INCONCLUSIVE


def test_parts_are_corrected_for_their_number_in_all_of_them() -> None:
    noise = (1.05, 1.03, 1.06, 1.04, 1.02)
    one = measured("1", {"default": 100.0, "application": 100.0}, noise)
    two = measured("2", {"application": 100.0, "plan": 100.0}, noise)
    alone = throughput(parts_of([one], [("default", "application")])[0].verdicts)[0]
    first, second = parts_of([one, two], [("default", "application"), ("application", "plan")])
    (of_first,), (of_second,) = throughput(first.verdicts), throughput(second.verdicts)
    assert alone.p_value is not None
    assert alone.p_adjusted == alone.p_value
    assert of_first.p_adjusted == pytest.approx(2 * alone.p_value)
    assert of_second.p_adjusted == pytest.approx(2 * alone.p_value)


def test_the_whole_is_the_product_of_the_parts() -> None:
    (verdict,) = throughput(product_verdicts([APPLICATION, SYSTEM, BUILD], ENDS))
    assert (verdict.variant, verdict.baseline) == ("plan", "default")
    assert verdict.effect == pytest.approx(
        1.1 * 1.0 * (120 / 90) * math.exp(2 * mean_log(NOISE) + mean_log(LOUD))
    )
    assert verdict.decision is Decision.INCONCLUSIVE  # as wide as the trials make it
    assert (verdict.rounds, verdict.blocks) == (5, 15)


def test_without_the_noisy_part_the_whole_is_shown() -> None:
    fine = measured("2", {"application": 105.0, "application+system": 105.0})
    (verdict,) = throughput(product_verdicts([APPLICATION, fine, BUILD], ENDS))
    assert verdict.decision is Decision.BETTER


def test_a_metric_that_a_part_lacks_is_not_made_up() -> None:
    (verdict,) = [v for v in product_verdicts([APPLICATION, BUILD], ("application", "plan"))
                  if v.metric == "latency_ms_p99"]  # fmt: skip
    assert (verdict.effect, verdict.is_withheld) == (None, True)
    assert verdict.reason.startswith("application against default: only 0 of at least 4 blocks")
