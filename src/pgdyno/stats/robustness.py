"""Robustness checks and diagnostics shown with a verdict, in words. They never affect the decision."""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.stats import autocorrelation, wording
from pgdyno.stats.bootstrap import bca_interval
from pgdyno.stats.inference import MINIMUM_ROUNDS_FOR_VERDICT, Inference
from pgdyno.stats.sample import Sample
from pgdyno.stats.signed_rank import signed_rank_p_value

CHECKS_FROM_BLOCKS = 20  # with fewer, neither the bootstrap nor ranks are informative


def robustness_checks(sample: Sample, inference: Inference, level: float) -> Mapping[str, str]:
    """Return the results of robustness checks and diagnostics, by name."""
    checks: dict[str, str] = {}
    if sample.blocks >= CHECKS_FROM_BLOCKS and sample.rounds >= MINIMUM_ROUNDS_FOR_VERDICT:
        checks.update(_second_opinions(sample, level, is_changed=bool(inference.p_value <= 1 - level)))
    widening = float(inference.estimate.widening)
    if widening > 1:
        rho = float(inference.estimate.autocorrelation)
        checks["autocorrelation between rounds"] = f"{rho:.2f}: the interval is {widening:.1f} times wider"
    within = autocorrelation.within_rounds(sample)
    if within is not None:
        checks["autocorrelation within rounds"] = f"{float(within):.2f}: part of the spread between rounds"
    return checks


def _second_opinions(sample: Sample, level: float, *, is_changed: bool) -> Mapping[str, str]:
    """Return whether bootstrap and ranks agree with the interval on whether there is a change."""
    bca = bca_interval(sample.round_means, level)
    is_excluded = bca.low > 1 or bca.high < 1
    ranked = signed_rank_p_value(sample.round_means)
    return {
        "BCa bootstrap": wording.agreement(agrees=is_excluded is is_changed, figures=wording.interval(bca)),
        "signed rank": wording.agreement(
            agrees=(ranked <= 1 - level) is is_changed, figures=wording.p_value(ranked)
        ),
    }
