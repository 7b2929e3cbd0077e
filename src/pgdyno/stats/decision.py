"""Verdicts from log-ratios: better, worse, equivalent or inconclusive, each with its reason.

    better / worse   the test excludes no change, in that direction (after ``adjust``: Holm's)
    equivalent       else, if TOST shows that the effect is within the margin
    inconclusive     else; always if the verdict is withheld (see ``inference``) or without an interval

The interval in a verdict is that of a single comparison; only the decision accounts for the others.

Holm's correction: probability of at most α for any false finding among several comparisons.

Source: Holm (1979), Scandinavian Journal of Statistics 6, 65-70.

Robustness checks and diagnostics shown with a verdict, in words. They never affect the decision.

Source of the signed-rank test, which only assumes symmetric noise: Wilcoxon (1945), Biometrics Bulletin 1,
80-83; exact null distribution up to 50 rounds without ties.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from pgdyno.model.experiments.experiment import Stopping
from pgdyno.model.experiments.metric import Better, Metric
from pgdyno.model.experiments.verdict import Decision, Equivalence, Interval, VarianceComponents, Verdict
from pgdyno.stats import nested, wording
from pgdyno.stats.bootstrap import bca_interval
from pgdyno.stats.inference import MINIMUM_ROUNDS_FOR_VERDICT, Inference, infer, infer_mean, infer_product
from pgdyno.stats.nested import MeanEstimate
from pgdyno.stats.power import detectable_effect
from pgdyno.stats.sample import FloatArray, Sample, autocorrelation_within_rounds

_MOST_EXACT = 50  # rounds
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
    within = autocorrelation_within_rounds(sample)
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


def signed_rank_p_value(round_means: FloatArray) -> float:
    """Return the two-sided p-value against no change; rounds without any change are left out.

    Shapes: (R,), not all zero.
    """
    sizes = np.unique(np.abs(round_means))
    if sizes.size < round_means.size or sizes.size > _MOST_EXACT or sizes[0] == 0:
        # Importing it takes a second, more than all other imports of a command; only rare cases need it.
        from scipy import stats

        return float(stats.wilcoxon(round_means).pvalue)
    positive = int(np.sum(np.searchsorted(sizes, round_means[round_means > 0]) + 1))
    share = _null_distribution(sizes.size)
    return min(1.0, 2 * float(min(share[: positive + 1].sum(), share[positive:].sum())))


def _null_distribution(rounds: int) -> FloatArray:
    """Return the probability of every sum of positive ranks, from 0 on, if both signs are equally likely."""
    share = np.ones(1)
    for rank in range(1, rounds + 1):
        share = (np.pad(share, (0, rank)) + np.pad(share, (rank, 0))) / 2
    return share


def adjusted_p_values(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return Holm's adjusted p-values, in the order given: reject those up to α."""
    ascending = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(ascending):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return tuple(adjusted)


def decide(  # noqa: PLR0913 — all keyword-only, and each is one line of an experiment's design
    log_ratios: Sequence[Sequence[float]],
    *,
    workload: str,
    metric: Metric,
    variant: str,
    baseline: str,
    level: float,
    equivalence_margin: float,
    power: float,
    stopping: Stopping = Stopping.FIXED,
    bias: float = 0.0,
    void_blocks: int = 0,
) -> Verdict:
    """Return the verdict on one metric of one workload.

    Shapes: log_ratios[round][block] = ln(variant / baseline), in chronological order, without void blocks.
    ``stopping`` selects the t interval (numbers fixed beforehand) or the anytime-valid one (data-dependent).
    ``bias`` is the standard deviation, in ln, of a possible bias of the whole experiment.
    Raises: ValueError for a log-ratio that is not finite.
    """
    sample = Sample.of(log_ratios)
    draft = _draft([sample], (workload, metric.name, variant, baseline), void_blocks)
    if reason := nested.missing(sample):
        return replace(draft, reason=reason.reason, is_withheld=True)
    is_anytime = stopping is not Stopping.FIXED
    question = _Question(metric, level, equivalence_margin, power, is_anytime=is_anytime, bias=bias)
    return _answer(draft, sample, question)


def decide_apart(  # noqa: PLR0913 — as above
    values: Sequence[Sequence[float]],
    baseline_values: Sequence[Sequence[float]],
    *,
    workload: str,
    metric: Metric,
    variant: str,
    baseline: str,
    level: float,
    equivalence_margin: float,
    power: float,
    void_blocks: int = 0,
) -> Verdict:
    """Return the verdict on two servers measured separately, in independent rounds: on two machines.

    Shapes: values[round][block] = ln of the metric, of ``variant`` and of ``baseline``; the numbers of rounds
    may differ. No common noise cancels, unlike side by side: the interval is Welch's, for the difference of
    two means of rounds, and applies to these two during their measurement.
    Raises: ValueError for a figure that is not finite.
    Sources: Welch (1947), Biometrika 34, 28-35; Georges, Buytaert, Eeckhout (2007), OOPSLA, §3.3: several
    invocations of each of two systems, compared by the t interval of their means' difference.
    """
    samples = {variant: Sample.of(values), baseline: Sample.of(baseline_values)}
    one, other = samples.values()
    draft = _draft([one, other.inverse], (workload, metric.name, variant, baseline), void_blocks)
    for name, sample in samples.items():
        if reason := nested.missing(sample):
            return replace(draft, reason=f"{name}: {reason.reason}", is_withheld=True)
    inference = infer_product([one, other.inverse], level=level, margin=equivalence_margin)
    question = _Question(metric, level, equivalence_margin, power, is_anytime=False)
    verdict = _with_interval(draft, inference, question)
    for name, sample in samples.items():
        alone = infer(sample, level=level, margin=equivalence_margin, is_anytime=False)
        if alone.is_withheld:
            centred = Sample(sample.values - sample.round_means.mean(), sample.counts)
            reason_ = _why_withheld(centred, alone, wording.drifted_apart)
            return replace(verdict, reason=f"{name}: {reason_}", is_withheld=True)
    return _decided(verdict, question)


def decide_mean(  # noqa: PLR0913 — as above
    estimated: MeanEstimate,
    *,
    workload: str,
    metric: Metric,
    variant: str,
    baseline: str,
    level: float,
    equivalence_margin: float,
    power: float,
    blocks: int,
    void_blocks: int = 0,
) -> Verdict:
    """Return the verdict on a mean of separately measured effects: of machines, or of one's experiments.

    The verdict's rounds are the averaged effects; ``blocks`` is their total number of blocks.
    """
    question = _Question(metric, level, equivalence_margin, power, is_anytime=False)
    draft = Verdict(
        workload=workload,
        metric=metric.name,
        variant=variant,
        baseline=baseline,
        decision=Decision.INCONCLUSIVE,
        reason="",
        effect=math.exp(float(estimated.mean)),
        interval=None,
        mde=None,
        p_value=None,
        p_adjusted=None,
        rounds=estimated.rounds,
        blocks=blocks,
        void_blocks=void_blocks,
    )
    inference = infer_mean(estimated, level=level, margin=equivalence_margin)
    return _decided(_with_interval(draft, inference, question), question)


def adjust(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Correct the verdicts of one experiment for their number, by Holm, each metric separately.

    The comparisons of a metric comprise all workloads and all variants except the baseline. A difference that
    is no longer significant becomes equivalent if TOST passed, else inconclusive.
    """
    families: dict[str, list[int]] = defaultdict(list)
    for index, verdict in enumerate(verdicts):
        if verdict.p_value is not None:
            families[verdict.metric].append(index)
    adjusted = list(verdicts)
    for members in families.values():
        p_values = adjusted_p_values([verdicts[index].p_value or 0.0 for index in members])
        for index, p_adjusted in zip(members, p_values, strict=True):
            adjusted[index] = _adjusted(verdicts[index], p_adjusted, len(members))
    return adjusted


def _draft(steps: Sequence[Sample], about: tuple[str, str, str, str], void_blocks: int) -> Verdict:
    """Return a verdict without a decision; ``about`` is its workload, metric, variant and baseline."""
    workload, metric, variant, baseline = about
    is_measured = all(step.blocks for step in steps)
    return Verdict(
        workload=workload,
        metric=metric,
        variant=variant,
        baseline=baseline,
        decision=Decision.INCONCLUSIVE,
        reason="",
        effect=math.exp(sum(step.round_means.mean() for step in steps)) if is_measured else None,
        interval=None,
        mde=None,
        p_value=None,
        p_adjusted=None,
        rounds=min(step.rounds for step in steps),
        blocks=sum(step.blocks for step in steps),
        void_blocks=void_blocks,
    )


@dataclass(frozen=True)
class _Question:
    """The parameters of a decision."""

    metric: Metric
    level: float
    margin: float
    power: float
    is_anytime: bool
    bias: float = 0.0


def _answer(draft: Verdict, sample: Sample, question: _Question) -> Verdict:
    within = partial(
        infer, sample, level=question.level, margin=question.margin, is_anytime=question.is_anytime
    )
    inference = within(bias=question.bias)
    components = VarianceComponents(*(math.sqrt(float(one)) for one in nested.anova_components(sample)))
    critical = float(inference.critical)
    if not math.isfinite(critical):
        reason = f"{sample.rounds} rounds are too few for an interval that is valid after every round"
        return replace(draft, reason=reason, components=components, is_withheld=True)
    verdict = replace(
        _with_interval(draft, inference, question),
        components=components,
        checks=robustness_checks(sample, within(), question.level),  # without the bias
    )
    if inference.is_withheld:
        return replace(verdict, reason=_why_withheld(sample, inference), is_withheld=True)
    return _decided(verdict, question)


def _with_interval(draft: Verdict, inference: Inference, question: _Question) -> Verdict:
    critical = float(inference.critical)
    return replace(
        draft,
        interval=nested.ratio_interval(inference.estimate, critical, question.level),
        mde=_detectable(inference, critical, question.power),
        p_value=float(inference.p_value),
        equivalence=_equivalence(inference, question),
    )


def _equivalence(inference: Inference, question: _Question) -> Equivalence:
    critical = float(inference.critical_equivalence)
    level = question.level if question.is_anytime else 2 * question.level - 1
    bounds = nested.ratio_interval(inference.estimate, critical, level)
    return Equivalence(question.margin, float(inference.p_equivalence), bounds)


def _detectable(inference: Inference, critical: float, power: float) -> float | None:
    estimate = inference.estimate
    effect = detectable_effect(float(estimate.standard_error), float(estimate.df), critical, power)
    return effect if math.isfinite(effect) else None


def _decided(verdict: Verdict, question: _Question) -> Verdict:
    effect, bounds = _effect_and_interval(verdict)
    if (verdict.p_value or 0.0) <= 1 - question.level:
        if question.metric.better is Better.NEITHER:
            return replace(verdict, reason=wording.explanatory(effect, bounds))
        is_better = (effect > 1) is (question.metric.better is Better.HIGHER)
        decision = Decision.BETTER if is_better else Decision.WORSE
        return replace(verdict, decision=decision, reason=wording.difference(effect, bounds))
    if shown := _shown_equivalence(verdict, question.level):
        return replace(
            verdict, decision=Decision.EQUIVALENT, reason=wording.equivalent(shown, question.level)
        )
    return replace(verdict, reason=wording.undecided(bounds, verdict.mde, question.power))


def _adjusted(verdict: Verdict, p_adjusted: float, comparisons: int) -> Verdict:
    adjusted = replace(verdict, p_adjusted=p_adjusted)
    if verdict.decision not in {Decision.BETTER, Decision.WORSE}:
        return adjusted
    effect, bounds = _effect_and_interval(verdict)
    if p_adjusted <= 1 - bounds.level:
        return adjusted
    if shown := _shown_equivalence(verdict, bounds.level):
        return replace(adjusted, decision=Decision.EQUIVALENT, reason=wording.equivalent(shown, bounds.level))
    reason = wording.corrected_away(effect, bounds, (verdict.p_value or 0.0, p_adjusted), comparisons)
    return replace(adjusted, decision=Decision.INCONCLUSIVE, reason=reason)


def _effect_and_interval(verdict: Verdict) -> tuple[float, Interval]:
    if verdict.effect is None or verdict.interval is None:
        raise ValueError(f"the verdict on {verdict.metric} of {verdict.workload} has no interval")
    return verdict.effect, verdict.interval


def _shown_equivalence(verdict: Verdict, level: float) -> Equivalence | None:
    """Return the equivalence test; None if it did not pass."""
    tested = verdict.equivalence
    return tested if tested is not None and tested.p_value <= 1 - level else None


def _why_withheld(
    sample: Sample, inference: Inference, drifted: Callable[[float, float, float], str] = wording.drifted
) -> str:
    if sample.rounds < inference.minimum_rounds:
        return wording.too_few_rounds(sample.rounds, inference.minimum_rounds)
    means, third = sample.round_means, max(1, sample.rounds // 3)
    first, last = np.exp(means[:third].mean()), np.exp(means[-third:].mean())
    return drifted(float(first), float(last), float(inference.p_drift))
