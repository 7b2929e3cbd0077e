"""When an experiment ends."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.model.experiment import Block, Design, Stopping
from pgdyno.model.verdict import Decision, Verdict
from pgdyno.stats.inference import MINIMUM_ROUNDS_FOR_VERDICT

_JUDGED_FROM_BLOCKS = 8  # below that, a share of void blocks says little


def rounds_within(remaining_s: float, round_s: float) -> int:
    """Return how many rounds to run in all: the first took ``round_s``, after it ``remaining_s`` are left.

    Never fewer than a verdict needs: a budget that is too small is exceeded rather than wasted.
    """
    return max(MINIMUM_ROUNDS_FOR_VERDICT, 1 + int(remaining_s / round_s))


def lost_rounds(blocks: Sequence[Block]) -> int:
    """Count the rounds in which some workload has no block that counts: they are repeated."""
    places = {(block.round, block.workload) for block in blocks}
    counted = {(block.round, block.workload) for block in blocks if not block.void}
    return len({round_index for round_index, _ in places - counted})


def void_share(blocks: Sequence[Block]) -> float:
    """Return the share of blocks that do not count."""
    return sum(1 for block in blocks if block.void) / max(1, len(blocks))


def is_too_noisy(blocks: Sequence[Block], design: Design) -> bool:
    """Whether so many blocks are void that the machine cannot be measured on now."""
    return len(blocks) >= _JUDGED_FROM_BLOCKS and void_share(blocks) > design.thresholds.void_block_share


def is_finished(verdicts: Sequence[Verdict], design: Design) -> bool:
    """Whether what was asked for has been reached, for stopping rules that look at the data.

    Only throughput decides: it is the primary metric of every workload.
    """
    primary = [verdict for verdict in verdicts if verdict.metric == "throughput_tps"]
    if not primary or design.stopping is Stopping.FIXED:
        return False
    if design.stopping is Stopping.DECIDED:
        return all(verdict.decision is not Decision.INCONCLUSIVE for verdict in primary)
    wanted = design.precision or 0.0
    return all(v.interval is not None and v.interval.half_width <= wanted for v in primary)
