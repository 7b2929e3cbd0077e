"""When an experiment ends."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.model.experiment import Block, Design, Stopping
from pgdyno.model.verdict import Decision, Verdict
from pgdyno.stats.inference import MINIMUM_ROUNDS_FOR_LOOKING, MINIMUM_ROUNDS_FOR_VERDICT

_JUDGED_FROM_BLOCKS = 8  # below that, a share of void blocks says little


def minimum_rounds(design: Design) -> int:
    """Return the fewest rounds that this design can give a verdict with."""
    return MINIMUM_ROUNDS_FOR_VERDICT if design.stopping is Stopping.FIXED else MINIMUM_ROUNDS_FOR_LOOKING


def rounds_within(remaining_s: float, round_s: float, minimum: int) -> int:
    """Return how many rounds to run in all: the first took ``round_s``, after it ``remaining_s`` are left.

    Never fewer than a verdict needs: a budget that is too small is exceeded rather than wasted.
    """
    return max(minimum, 1 + int(remaining_s / round_s))


def rounds_to_repeat(blocks: Sequence[Block], workloads: Sequence[str], done: int, wanted: int) -> int:
    """Return how many more rounds the worst workload needs to have ``wanted`` that count.

    A round counts for a workload if any of its blocks does. At most ``wanted`` rounds are repeated: a
    workload that is always void would never end.
    """
    counted = {(block.round, block.workload) for block in blocks if not block.void}
    lost = [done - sum((round_, workload) in counted for round_ in range(done)) for workload in workloads]
    return min(max(lost, default=0), wanted)


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
