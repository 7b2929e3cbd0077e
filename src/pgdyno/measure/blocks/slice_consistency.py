"""Check the counts of slices against their blocks. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

from pgdyno.measure.blocks.histogram import Histogram, decode
from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment
from pgdyno.model.experiments.metric import P50, P95, P99, TAIL_MEAN
from pgdyno.model.experiments.slices import Slice

_ERROR = 1e-3  # tolerance: twice the largest error of a histogram with 3 significant digits
_QUANTILES = {P50: 0.50, P95: 0.95, P99: 0.99}
_MOST_LISTED = 8
_MERGED_AT_ONCE = 256  # a slice's histogram takes a kilobyte


def slice_contradictions(
    experiment: Experiment, slices: Iterable[tuple[tuple[str, int, int], Slice]]
) -> tuple[str, ...]:
    """Return a sentence for each contradiction between a block and its slices; only the first ones of many.

    Each slice comes with its workload, round and block, in chronological order, block by block. Not checked:
    blocks without counts per slice, and slices that a block leaves out.
    """
    blocks = {(block.workload, block.round, block.index): block for block in experiment.blocks}
    arms = [variant.name for variant in experiment.variants]
    seen: set[tuple[str, int, int]] = set()
    found: list[str] = []
    for place, group in groupby(slices, key=itemgetter(0)):
        if place in seen:
            found.append(f"{_name(place)}: its slices are not contiguous")
            break
        seen.add(place)
        found += _of_block(blocks[place], arms, (one for _, one in group))
    if len(found) > _MOST_LISTED:
        found[_MOST_LISTED:] = [f"and {len(found) - _MOST_LISTED} more"]
    return tuple(found)


def _of_block(block: Block, arms: Sequence[str], slices: Iterable[Slice]) -> Iterator[str]:
    counted: dict[str, _Counted] = defaultdict(_Counted)
    left_out = frozenset(block.left_out)
    for position, one in enumerate(slices):
        if one.latencies is not None and position not in left_out:
            counted[arms[one.arm]].add(one.completed or 0, decode(one.latencies))
    name = _name((block.workload, block.round, block.index))
    for arm in block.arms:
        if arm.variant in counted:
            yield from (
                f"{name}: {what} of {arm.variant} {why}" for what, why in _of_arm(arm, counted[arm.variant])
            )


def _name(place: tuple[str, int, int]) -> str:
    workload, round_, block = place
    return f"block {block + 1} of round {round_ + 1} of {workload}"


@dataclass
class _Counted:
    """Counts of one arm's slices, summed as they arrive: a block may have any number of slices."""

    completed: int = 0
    parts: list[Histogram] = field(default_factory=list)

    def add(self, completed: int, latencies: Histogram) -> None:
        """Add a slice's counts."""
        self.completed += completed
        self.parts.append(latencies)
        if len(self.parts) > _MERGED_AT_ONCE:
            self.parts = [Histogram.merged(self.parts)]


def _of_arm(arm: ArmBlock, counted: _Counted) -> Iterator[tuple[str, str]]:
    if counted.completed != arm.transactions:
        yield "transactions", f"is {arm.transactions}, but its slices have {counted.completed}"
    merged = Histogram.merged(counted.parts)
    if not merged.count:
        return
    again = {name: merged.quantile(share) / 1000 for name, share in _QUANTILES.items()}
    for name, value in {**again, TAIL_MEAN: merged.tail_mean() / 1000}.items():
        if name in arm.values and abs(arm.values[name] - value) > _ERROR * value:
            yield name, f"is {arm.values[name]:g}, but its slices have {value:.4g}"
