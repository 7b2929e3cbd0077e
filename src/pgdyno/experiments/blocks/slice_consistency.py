"""Check the counts of slices for consistency with their blocks. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from pgdyno.experiments.blocks.histogram import Histogram
from pgdyno.experiments.blocks.histogram_text import decode
from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment, Slice
from pgdyno.model.experiments.metric import P50, P95, P99, TAIL_MEAN

_ERROR = 1e-3  # of a histogram of 3 significant digits: at most half of it is used
_QUANTILES = {P50: 0.50, P95: 0.95, P99: 0.99}
_MOST_LISTED = 8


def slice_contradictions(
    experiment: Experiment, slices: Iterable[tuple[tuple[str, int, int], Slice]]
) -> tuple[str, ...]:
    """Return where blocks and their slices differ, in sentences; of many the first ones.

    Each slice comes with its workload, round and block, in the order of time. Blocks without counts by slice
    are not looked at, nor slices that a block has left out.
    """
    left_out = {(block.workload, block.round, block.index): block.left_out for block in experiment.blocks}
    positions: Counter[tuple[str, int, int]] = Counter()
    by_arm: dict[tuple[str, int, int, str], list[Slice]] = defaultdict(list)
    for place, one in slices:
        if one.latencies is not None and positions[place] not in left_out.get(place, ()):
            by_arm[(*place, experiment.variants[one.arm].name)].append(one)
        positions[place] += 1
    found = [problem for block in experiment.blocks for problem in _of_block(block, by_arm)]
    if len(found) > _MOST_LISTED:
        found[_MOST_LISTED:] = [f"and {len(found) - _MOST_LISTED} more"]
    return tuple(found)


def _of_block(block: Block, by_arm: Mapping[tuple[str, int, int, str], list[Slice]]) -> Iterator[str]:
    for arm in block.arms:
        own = by_arm.get((block.workload, block.round, block.index, arm.variant), [])
        name = f"block {block.index + 1} of round {block.round + 1} of {block.workload}"
        yield from (f"{name}: {what} of {arm.variant} {why}" for what, why in _of_arm(arm, own))


def _of_arm(arm: ArmBlock, own: list[Slice]) -> Iterator[tuple[str, str]]:
    if not own:
        return
    completed = sum(one.completed or 0 for one in own)
    if completed != arm.transactions:
        yield "transactions", f"is {arm.transactions}, and its slices have {completed}"
    merged = Histogram.merged(decode(one.latencies) for one in own if one.latencies is not None)
    if not merged.count:
        return
    again = {name: merged.quantile(share) / 1000 for name, share in _QUANTILES.items()}
    for name, value in {**again, TAIL_MEAN: merged.tail_mean() / 1000}.items():
        if name in arm.values and abs(arm.values[name] - value) > _ERROR * value:
            yield name, f"is {arm.values[name]:g}, and its slices have {value:.4g}"
