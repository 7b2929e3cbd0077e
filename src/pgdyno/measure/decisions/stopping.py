"""Rules for the end of an experiment, and for the number of its rounds.

Estimate an experiment's duration before it starts.

    round        = arms x (start + warm-up x workloads) + blocks x turns x slice, a little longer
    stretches    = two arms x write workloads x stretch, in a few of the rounds
    preparation  = inspecting the server and the machine + loading data that are not loaded yet

Warm-ups, blocks and turns come from the design. The rest are guesses, good enough to distinguish five rounds
from two. The measured duration of the first round replaces them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pgdyno.measure.design.schedule import stretches_s, turns_of
from pgdyno.measure.verdicts.failures import is_any_shown, is_comparable, is_forbidden
from pgdyno.model.experiments.experiment import (
    STRETCH_ROUNDS,
    Block,
    Design,
    DesignKind,
    Experiment,
    Stopping,
)
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Decision, Verdict
from pgdyno.model.experiments.workload import DataSet, Workload
from pgdyno.stats.inference import MINIMUM_ROUNDS_FOR_LOOKING, MINIMUM_ROUNDS_FOR_VERDICT

_JUDGED_FROM_BLOCKS = 8  # a share of fewer blocks is not meaningful
_FIGURES = re.compile(r"[\d.]+")  # figures in a reason; the rest identifies the rule
_JUDGED_FROM_ROUNDS = 3  # blocks of one round are close in time: one short disturbance can void all of them

Look: TypeAlias = Callable[[Experiment], bool]
"""Whether the results so far are enough; its error rates allow for a single call before the end."""


def minimum_rounds(design: Design) -> int:
    """Return the fewest rounds with which this design can give a verdict."""
    return MINIMUM_ROUNDS_FOR_VERDICT if design.stopping is Stopping.FIXED else MINIMUM_ROUNDS_FOR_LOOKING


def rounds_within(remaining_s: float, round_s: float, minimum: int) -> int:
    """Return the total number of rounds, given that the first took ``round_s`` and ``remaining_s`` are left.

    At least ``minimum``, the rounds that a verdict needs: a budget that is too small is exceeded, not wasted.
    """
    return max(minimum, 1 + int(remaining_s / round_s))


def round_s(earlier: Experiment) -> float:
    """Return the mean duration of a round of all workloads, from the starts of the first and the last."""
    starts = {block.round: block.started_ns for block in reversed(earlier.blocks)}
    first, last = min(starts), max(starts)
    return (starts[last] - starts[first]) / 1e9 / max(1, last - first)


def as_even(rounds: int, minimum: int, design: Design) -> int:
    """Return an even number of rounds for a duet: each of two servers then has each seat equally often.

    With k servers, seats repeat every k rounds. The bias from an incomplete cycle is at most 0.8 % (measured:
    which server starts last) divided by the rounds. Leaving out k - 1 rounds would cost more.
    """
    return rounds - rounds % 2 if design.kind is DesignKind.DUET and rounds > minimum else rounds


def rounds_extended(planned: int, remaining_s: float, round_s: float, design: Design) -> int:
    """Return the total number of rounds once those planned after the first one are done.

    ``round_s`` is the longest round so far: a round without huge pages ends at once and predicts nothing. The
    results are not considered, so no error is more likely.
    """
    return as_even(planned + max(0, int(remaining_s / round_s)), planned, design)


def rounds_to_repeat(blocks: Sequence[Block], workloads: Sequence[str], done: int, wanted: int) -> int:
    """Return how many more rounds the worst workload needs for ``wanted`` rounds that count.

    A round counts for a workload if any of its blocks counts with all arms. At most ``wanted`` rounds are
    repeated; otherwise a workload that is always void would never end.
    """
    counted = {(block.round, block.workload) for block in blocks if not block.void_reasons}
    lost = [done - sum((round_, workload) in counted for round_ in range(done)) for workload in workloads]
    return min(max(lost, default=0), wanted)


def void_share(blocks: Sequence[Block]) -> float:
    """Return the share of void blocks; a block with some void arms counts by their share."""
    return sum(_void_part(block) for block in blocks) / max(1, len(blocks))


def _void_part(block: Block) -> float:
    return 1.0 if block.void else sum(1 for arm in block.arms if arm.void) / max(1, len(block.arms))


def typical_void_reason(blocks: Sequence[Block]) -> str | None:
    """Return one void reason of the most frequent kind; None if no block or trial is void."""
    reasons = [reason for block in blocks for reason in block.void_reasons]
    kinds = Counter(map(_kind, reasons))
    return max(reasons, key=lambda reason: kinds[_kind(reason)], default=None)


def _kind(reason: str) -> str:
    return _FIGURES.sub("", reason)


def counts_nothing(blocks: Sequence[Block]) -> bool:
    """Return whether all blocks are void, after enough rounds that more are futile."""
    return _is_judged(blocks) and all(block.void for block in blocks)


def is_too_noisy(blocks: Sequence[Block], design: Design) -> bool:
    """Return whether enough blocks are void for the report to begin with a warning."""
    return _is_judged(blocks) and void_share(blocks) > design.thresholds.void_block_share


def _is_judged(blocks: Sequence[Block]) -> bool:
    return (
        len(blocks) >= _JUDGED_FROM_BLOCKS and len({block.round for block in blocks}) >= _JUDGED_FROM_ROUNDS
    )


def _is_known_to_fail(verdict: Verdict, blocks: Sequence[Block]) -> bool:
    return (
        verdict.rounds >= MINIMUM_ROUNDS_FOR_LOOKING
        and is_forbidden(verdict, blocks)
        and is_any_shown(blocks, verdict.workload, (verdict.variant, verdict.baseline))
    )


def is_finished(verdicts: Sequence[Verdict], design: Design, blocks: Sequence[Block] = ()) -> bool:
    """Return whether the goal is reached, for stopping rules that look at the data.

    Only throughput decides: it is the primary metric of every workload. The rule ignores arms that missed
    their background rate or failed too often: more rounds do not make them comparable.
    """
    primary = [verdict for verdict in verdicts if verdict.metric == THROUGHPUT]
    if not primary or design.stopping is Stopping.FIXED:
        return False
    awaited = [
        v
        for v in primary
        if is_comparable(blocks, v.workload, v.variant, v.baseline) and not _is_known_to_fail(v, blocks)
    ]
    if design.stopping is Stopping.DECIDED:
        return all(verdict.decision is not Decision.INCONCLUSIVE for verdict in awaited)
    wanted = design.precision or 0.0
    return all(v.interval is not None and v.interval.half_width <= wanted for v in awaited)


_START_S = 2.0  # a guess: to copy, start, stop and checkpoint a server; measured: 1.3 … 2 s
_TURNS_LAST = 1.05  # a guess: drains, and readings between blocks; measured: 1.01 … 1.05
_LOOKING_S = 20.0  # a guess: a server is started and inspected, wake-ups are measured
_LOADING_BYTES_PER_S = 15e6  # a guess; measured: 615 MB within a minute


@dataclass(frozen=True)
class TimeNeeded:
    """The estimated duration of an experiment's preparation and of each round, in seconds."""

    design: Design
    preparation_s: float
    round_s: float
    stretches_s: float  # extra duration of the first rounds together

    @property
    def least_s(self) -> float:
        """The time to the first verdict, in seconds."""
        return self.preparation_s + self.measuring_s

    @property
    def measuring_s(self) -> float:
        """The duration of the rounds that the first verdict needs, in seconds."""
        return self.least_rounds * self.round_s + self.stretches_s

    @property
    def least_rounds(self) -> int:
        """The fewest rounds that a verdict needs."""
        return minimum_rounds(self.design)

    def rounds_within(self, budget_s: float) -> int:
        """Return how many rounds fit into a budget."""
        rounds = max(0, int((budget_s - self.preparation_s - self.stretches_s) / self.round_s))
        return as_even(rounds, self.least_rounds, self.design)


def time_needed(
    workloads: Sequence[Workload],
    design: Design,
    arms: int,
    to_load: Sequence[DataSet],
    switch_s: float = 0.0,
) -> TimeNeeded:
    """Return the estimated duration with ``arms`` arms.

    ``switch_s`` is the overhead of each trial.
    """
    servers = len({workload.data_set.key for workload in workloads})
    round_s = arms * (servers * _START_S + len(workloads) * design.warmup_s)
    round_s += sum(design.blocks_per_round * _block_s(one, design, arms) for one in workloads)
    loading_s = sum(data_set.size_bytes for data_set in to_load) / _LOADING_BYTES_PER_S
    alone_s = STRETCH_ROUNDS * stretches_s(workloads, design)
    return TimeNeeded(design, _LOOKING_S + loading_s, round_s + arms * switch_s, alone_s)


def _block_s(workload: Workload, design: Design, arms: int) -> float:
    """Return the duration of a block over all arms; with alternating trials, of one trial per arm."""
    if design.kind is DesignKind.ALTERNATING:
        return arms * design.block_s
    own = design if workload.is_read_only else design.with_writing().for_writing()
    return turns_of(arms, own) * own.slice_s * _TURNS_LAST
