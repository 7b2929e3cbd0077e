"""Verdicts on single statements: the server's time per call, variant against baseline. Pure.

The unit is the round, as for all verdicts: the ratio of the mean times of a round's calls, on both servers.
All statements of a workload are decided together (``stats/many_ratios.py``). *Slower* also needs a lower
bound beyond 3 %.

Only statements with enough calls and a noticeable share of the time are judged: of the others, the mean over
a round is mostly chance. In a closed loop, one statement that becomes faster changes the waiting of all
others for CPUs and locks: a variant with another throughput is compared under another load.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pgdyno.base import numbers
from pgdyno.model.experiments.experiment import Block, Design, Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.statements import (
    NOTHING_COUNTED,
    OTHERS,
    UNNAMED,
    StatementCount,
    StatementVerdict,
    added_up,
)
from pgdyno.model.experiments.verdict import Decision, Interval
from pgdyno.stats.inference import MINIMUM_ROUNDS_FOR_VERDICT
from pgdyno.stats.many_ratios import adjusted, levels_after_selection, many_means

LEAST_CALLS = 25
"""Counted ones per round, of either server: a quarter of the turns is counted, so about 100 calls."""
LEAST_SHARE = 0.005
"""Of the time of all statements, on either server."""
LEAST_SLOWER = 0.03
"""The lower bound of a statement that is called slower: smaller differences are of no use."""
OTHER_LOAD = 0.1
"""A throughput that differs by more is another load: each call also waits for others."""

_Pair = tuple[StatementCount, StatementCount]
"""A statement's counts on the baseline's and on the variant's server."""


def statement_verdicts(experiment: Experiment) -> tuple[StatementVerdict, ...]:
    """Return the verdicts on all statements, by workload and variant, most of the baseline's time first.

    Empty where no statements were counted. With one variant, there are times and no effects.
    """
    names = [one.name for one in experiment.variants if one.name != experiment.baseline]
    return tuple(
        verdict
        for workload in experiment.workloads
        for variant in names or [experiment.baseline]
        for verdict in _verdicts(experiment, workload, variant)
    )


def other_load(experiment: Experiment, workload: str, variant: str) -> float | None:
    """Return the ratio of a variant's throughput to the baseline's; None if it is within 10 %."""
    of_variant = (v for v in experiment.verdicts if (v.workload, v.variant) == (workload, variant))
    effect = next((v.effect for v in of_variant if v.metric == THROUGHPUT), None)
    return None if effect is None or abs(effect - 1) <= OTHER_LOAD else effect


def has_slower_statement(experiment: Experiment) -> bool:
    """Whether a statement is slower on a variant's server under a load like the baseline's."""
    return any(
        one.decision is Decision.WORSE and other_load(experiment, one.workload, one.variant) is None
        for one in statement_verdicts(experiment)
    )


def costliest(experiment: Experiment, workload: str) -> tuple[str, float, StatementCount] | None:
    """Return the statement with most of the baseline's time, its share, and its counts; None without any."""
    rounds = counts_by_round(experiment.blocks, workload, experiment.baseline, experiment.baseline)
    whole: dict[str, StatementCount] = {}
    for of_round in rounds:
        for name, (count, _) in of_round.items():
            whole[name] = whole.get(name, NOTHING_COUNTED) + count
    named = {name: count for name, count in whole.items() if name not in {OTHERS, UNNAMED} and count.calls}
    if not named:
        return None
    first = max(named, key=lambda name: named[name].time_ms)
    return first, named[first].time_ms / added_up(whole.values()).time_ms, named[first]


def counts_by_round(
    blocks: Sequence[Block], workload: str, variant: str, baseline: str
) -> list[dict[str, _Pair]]:
    """Return both servers' counts by statement, for each round with blocks that count for both."""
    rounds: dict[int, list[Block]] = {}
    for block in blocks:
        if block.workload == workload and not block.void_for(variant, baseline):
            rounds.setdefault(block.round, []).append(block)
    return [
        found for _, of_round in sorted(rounds.items()) if (found := _counts(of_round, variant, baseline))
    ]


def _counts(blocks: Sequence[Block], variant: str, baseline: str) -> dict[str, _Pair]:
    sums: dict[str, dict[str, StatementCount]] = {}
    for block in blocks:
        for arm in block.arms:
            if arm.variant in {variant, baseline}:
                of_arm = sums.setdefault(arm.variant, {})
                for name, count in arm.statements.items():
                    of_arm[name] = of_arm.get(name, NOTHING_COUNTED) + count
    if not sums.get(variant) or not sums.get(baseline):
        return {}
    names = {**sums[baseline], **sums[variant]}
    return {
        name: (sums[baseline].get(name, NOTHING_COUNTED), sums[variant].get(name, NOTHING_COUNTED))
        for name in names
    }


def _verdicts(experiment: Experiment, workload: str, variant: str) -> Iterator[StatementVerdict]:
    rounds = counts_by_round(experiment.blocks, workload, variant, experiment.baseline)
    if not rounds:
        return
    names = {name for of_round in rounds for name in of_round}
    nothing = NOTHING_COUNTED, NOTHING_COUNTED
    whole = {name: _sums([of_round.get(name, nothing) for of_round in rounds]) for name in names}
    times = tuple(sum(pair[arm].time_ms for pair in whole.values()) for arm in (0, 1))
    judged: list[str] = []
    found: dict[str, StatementVerdict] = {}
    for name in sorted(names, key=lambda name: -whole[name][0].time_ms):
        before, after = whole[name]
        calls = min(before.calls, after.calls) / len(rounds)
        share = max(
            one.time_ms / time if time else 0.0 for one, time in zip((before, after), times, strict=True)
        )
        reason = _too_little(name, calls, share)
        has_all = all(min(one.time_ms for one in of_round.get(name, nothing)) > 0 for of_round in rounds)
        if variant != experiment.baseline and not reason and has_all:
            judged.append(name)
        found[name] = StatementVerdict(
            workload,
            variant,
            experiment.baseline,
            name,
            before.time_ms / times[0] if times[0] else 0.0,
            calls,
            _per_call(before),
            _per_call(after),
            Decision.INCONCLUSIVE,
            reason or ("" if has_all else "not called in every round"),
        )
    found |= _decided([found[name] for name in judged], rounds, experiment.design)
    yield from found.values()


def _too_little(name: str, calls: float, share: float) -> str:
    """Return why a statement is not judged; empty if it is."""
    if name == OTHERS:
        return "several statements that take hardly any time"
    if name == UNNAMED:
        return "statements that the workload does not list"
    if share < LEAST_SHARE:
        return f"less than {numbers.share(LEAST_SHARE, 1)} of the time"
    if calls < LEAST_CALLS:
        return f"{calls:.0f} counted calls a round; at least {LEAST_CALLS} are needed"
    return ""


def _decided(
    drafts: Sequence[StatementVerdict], rounds: Sequence[Mapping[str, _Pair]], design: Design
) -> dict[str, StatementVerdict]:
    """Return the verdicts with their effects and decisions."""
    if not drafts:
        return {}
    if len(rounds) < MINIMUM_ROUNDS_FOR_VERDICT:
        few = f"{len(rounds)} rounds; at least {MINIMUM_ROUNDS_FOR_VERDICT} are needed"
        return {one.statement: replace(one, reason=few) for one in drafts}
    ratios = np.array(
        [[_log_ratio(of_round[one.statement]) for of_round in rounds] for one in drafts], dtype=np.float64
    )
    means = many_means(ratios, design.bias)
    p_values, p_same = adjusted(means.p_value), means.p_equivalent(design.equivalence_margin)
    is_found = p_values <= 1 - design.level
    levels = levels_after_selection(is_found, design.level)
    lows, highs = means.bounds(levels)
    found = {}
    for place, draft in enumerate(drafts):
        low, mean, high = (float(np.exp(one[place])) for one in (lows, means.mean, highs))
        interval = Interval(low, mean, high, float(levels[place]))
        decision, reason = _decision(
            interval, is_found=bool(is_found[place]), is_same=bool(p_same[place] <= 1 - design.level)
        )
        found[draft.statement] = replace(
            draft,
            effect=mean,
            interval=interval,
            p_adjusted=float(p_values[place]),
            decision=decision,
            reason=reason,
        )
    return found


def _decision(interval: Interval, *, is_found: bool, is_same: bool) -> tuple[Decision, str]:
    if is_found and interval.point < 1:
        return Decision.BETTER, ""
    if is_found and interval.low > 1 + LEAST_SLOWER:
        return Decision.WORSE, ""
    if is_same:
        return Decision.EQUIVALENT, ""
    if is_found:
        return Decision.INCONCLUSIVE, f"slower, but not certainly by more than {numbers.share(LEAST_SLOWER)}"
    return Decision.INCONCLUSIVE, "the interval allows both"


def _sums(pairs: Sequence[_Pair]) -> _Pair:
    return added_up(one for one, _ in pairs), added_up(other for _, other in pairs)


def _per_call(count: StatementCount) -> float | None:
    return count.time_ms / count.calls if count.calls else None


def _log_ratio(pair: _Pair) -> float:
    before, after = pair
    return math.log(after.time_ms / after.calls) - math.log(before.time_ms / before.calls)
