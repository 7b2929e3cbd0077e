"""Failed transactions and missed rates in an experiment, and the verdicts that they rule out. Pure.

Throughput counts successful transactions. A server that aborts many early has time for more of them, but is
not faster. A verdict must not favour a variant, nor state "no difference", if

    more than 5 % of its transactions failed, or
    the upper bound of the difference to the other's failed share is above one percentage point

That more transactions fail is a finding only if the lower bound of the difference is also above 0. The bounds
are one-sided at 5 %, from t intervals of the differences by round; with a single round, from two binomial
shares.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from statistics import fmean, stdev

from scipy import special

from pgdyno.base import numbers
from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment
from pgdyno.model.experiments.failures import (
    MOST_FAILED_SHARE,
    Failures,
    added_up,
    failed_share,
    failures_text,
)
from pgdyno.model.experiments.verdict import Decision, Verdict

MOST_MORE = 0.01
"""Largest allowed difference of a variant's failed share to that of the other one."""
_ERROR = 0.05
REQUIRED_BACKGROUND_SHARE = 0.95  # required share; the Insert Benchmark's service level
_BACKGROUND_RATE = "background_rate_share"


@dataclass(frozen=True)
class FailedTransactions:
    """An arm's failed transactions under one workload, over the blocks that count."""

    workload: str
    variant: str
    share: float
    failures: tuple[Failures, ...]


@dataclass(frozen=True)
class MissedRate:
    """How an arm missed its background rate. The published rule is for one run, so one pass is enough.

    ``lowest`` is the share of the rate reached in the worst pass.
    """

    passes: int  # that missed the rate
    of_passes: int
    lowest: float


def failed_transactions(experiment: Experiment) -> tuple[FailedTransactions, ...]:
    """Return the failed transactions of all arms, for workloads with any failures."""
    concerned = {block.workload for block in experiment.blocks for arm in block.arms if arm.failures}
    return tuple(
        one
        for workload in experiment.workloads
        if workload in concerned
        for variant in experiment.variants
        if (one := _of_arm(experiment.blocks, workload, variant.name)) is not None
    )


def doubts(blocks: Sequence[Block], workload: str, favoured: str, other: str) -> str:
    """Return why no verdict may favour a variant; empty if its failures allow it.

    The text is stored as a verdict's reason, and compared later (``is_forbidden``).
    """
    its, others = (_of_arm(blocks, workload, name) for name in (favoured, other))
    if its is None or others is None or not its.failures:
        return ""
    _, highest = _difference(blocks, workload, favoured, other)
    if its.share <= MOST_FAILED_SHARE and highest <= MOST_MORE:
        return ""
    limit = (
        f"at most {numbers.share(MOST_FAILED_SHARE)} may"
        if its.share > MOST_FAILED_SHARE
        else f"the difference may be as much as {numbers.share(highest, 1)}, and at most "
        f"{numbers.share(MOST_MORE)} is allowed"
    )
    return (
        f"{numbers.share(its.share, 1)} of the transactions of {favoured} failed, "
        f"{numbers.share(others.share, 1)} of {other} ({failures_text(its.failures)}): {limit}"
    )


def is_shown(blocks: Sequence[Block], workload: str, one: str, other: str) -> bool:
    """Whether too many transactions fail on one server, and significantly more than on the other."""
    return bool(doubts(blocks, workload, one, other)) and _difference(blocks, workload, one, other)[0] > 0


def is_any_shown(blocks: Sequence[Block], workload: str, variants: Collection[str]) -> bool:
    """Whether ``is_shown`` holds for any two of the variants."""
    return any(is_shown(blocks, workload, *pair) for pair in permutations(variants, 2))


def withhold(verdicts: Sequence[Verdict], blocks: Sequence[Block]) -> tuple[Verdict, ...]:
    """Return the verdicts, without a decision where failures rule out the favoured variant.

    An inconclusive verdict gets failures as its reason if significantly more transactions fail on one side.
    """
    return tuple(_withheld(verdict, blocks) for verdict in verdicts)


def is_forbidden(verdict: Verdict, blocks: Sequence[Block]) -> bool:
    """Whether a verdict is withheld because of failures."""
    pair = (verdict.variant, verdict.baseline)
    shares = {_shares(doubts(blocks, verdict.workload, *one)) for one in (pair, pair[::-1])}
    return verdict.is_withheld and _shares(verdict.reason) in shares - {""}


def missed_rate(blocks: Sequence[Block], workload: str, variant: str) -> MissedRate | None:
    """Return how an arm missed its background rate in passes that count; None if it kept it or has none."""
    reached = [
        arm.values[_BACKGROUND_RATE]
        for block in blocks
        if block.workload == workload and not block.void_for(variant)
        for arm in block.arms
        if arm.variant == variant and _BACKGROUND_RATE in arm.values
    ]
    missed = [share for share in reached if share < REQUIRED_BACKGROUND_SHARE]
    return MissedRate(len(missed), len(reached), min(missed)) if missed else None


def is_comparable(blocks: Sequence[Block], workload: str, variant: str, baseline: str) -> bool:
    """Whether neither arm missed a background rate."""
    return all(missed_rate(blocks, workload, name) is None for name in (variant, baseline))


def _shares(reason: str) -> str:
    """Return the beginning of ``doubts``: earlier versions listed the failures in other words."""
    return reason.partition(" (")[0]


def _withheld(verdict: Verdict, blocks: Sequence[Block]) -> Verdict:
    pair = (verdict.variant, verdict.baseline)
    both = (pair, pair[::-1])
    favoured = {
        Decision.BETTER: both[:1],
        Decision.WORSE: both[1:],
        Decision.EQUIVALENT: both,
        Decision.INCONCLUSIVE: tuple(one for one in both if is_shown(blocks, verdict.workload, *one)),
    }[verdict.decision]
    reasons = [why for one in favoured if (why := doubts(blocks, verdict.workload, *one))]
    if not reasons:
        return verdict
    return replace(verdict, decision=Decision.INCONCLUSIVE, reason=reasons[0], is_withheld=True)


def _difference(blocks: Sequence[Block], workload: str, one: str, other: str) -> tuple[float, float]:
    """Return lower and upper bound of the difference of the failed shares, ``one`` minus ``other``."""
    by_round: dict[int, list[Block]] = {}
    for block in blocks:
        if block.workload == workload and not block.void_for(one, other):
            by_round.setdefault(block.round, []).append(block)
    found = [_share(of_round, one) - _share(of_round, other) for of_round in by_round.values()]
    if not found:
        return 0.0, 0.0
    if len(found) == 1:
        [of_round] = by_round.values()
        error = math.sqrt(_variance(of_round, one) + _variance(of_round, other))
        width = float(special.ndtri(1 - _ERROR)) * error
    else:
        width = float(special.stdtrit(len(found) - 1, 1 - _ERROR)) * stdev(found) / math.sqrt(len(found))
    mean = float(fmean(found))
    return mean - width, mean + width


def _variance(blocks: Sequence[Block], variant: str) -> float:
    """Return the variance of the failed share, as a binomial proportion."""
    share = _share(blocks, variant)
    ended = sum(arm.transactions + sum(one.count for one in arm.failures) for arm in _arms(blocks, variant))
    return share * (1 - share) / max(1, ended)


def _share(blocks: Sequence[Block], variant: str) -> float:
    arms = list(_arms(blocks, variant))
    return failed_share(sum(arm.transactions for arm in arms), (one for arm in arms for one in arm.failures))


def _of_arm(blocks: Sequence[Block], workload: str, variant: str) -> FailedTransactions | None:
    """Return an arm's failed transactions; None if none of its blocks counts."""
    counted = [block for block in blocks if block.workload == workload and not block.void_for(variant)]
    arms = list(_arms(counted, variant))
    if not arms:
        return None
    failures = added_up(one for arm in arms for one in arm.failures)
    return FailedTransactions(workload, variant, _share(counted, variant), failures)


def _arms(blocks: Sequence[Block], variant: str) -> Iterator[ArmBlock]:
    return (arm for block in blocks for arm in block.arms if arm.variant == variant)
