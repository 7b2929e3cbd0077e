"""Check an imported experiment's consistency: existing names, possible figures. Pure.

A document with a valid format may still contradict itself, through an error or by manipulation.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, groupby, islice
from operator import itemgetter

from pgdyno.measure.blocks.histogram import Histogram, decode
from pgdyno.measure.verdicts.durability import doubts
from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment
from pgdyno.model.experiments.metric import P50, P95, P99, TAIL_MEAN, THROUGHPUT
from pgdyno.model.experiments.slices import Slice

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")  # used in file names and on command lines
_MOST = 1_000_000  # rounds, and blocks in one: arbitrary, far above any experiment
_LARGEST = 1 << 63  # bound of a store's integers
_MOST_LISTED = 8
_MOST_OF = {"variants": 1_000, "workloads": 1_000, "durability": 10_000}
"""Far above any experiment, and small enough for comparisons of all pairs."""
_LATENCY = "latency_ms_"


def contradictions(experiment: Experiment) -> tuple[str, ...]:
    """Return the contradictions in sentences; only the first ones of many."""
    if too_many := tuple(_of_sizes(experiment)):
        return too_many
    found = chain(
        _of_names(experiment), _of_verdicts(experiment), _of_design(experiment), _of_blocks(experiment)
    )
    first = tuple(islice(found, _MOST_LISTED))
    more = sum(1 for _ in found)
    return (*first, f"and {more} more") if more else first


def _of_sizes(experiment: Experiment) -> Iterator[str]:
    for name, most in _MOST_OF.items():
        if (count := len(getattr(experiment, name))) > most:
            yield f"it has {count} {name}, more than the limit of {most}"


def _of_names(experiment: Experiment) -> Iterator[str]:
    if not _ID.fullmatch(experiment.id):
        yield f'its id "{experiment.id}" has other characters than letters, digits, ".", "_", "-"'
    variants = [variant.name for variant in experiment.variants]
    if experiment.baseline not in variants:
        yield f'its baseline "{experiment.baseline}" is not one of its variants'
    yield from (f'it has two variants called "{name}"' for name, n in Counter(variants).items() if n > 1)


def _of_verdicts(experiment: Experiment) -> Iterator[str]:
    variants, workloads = {variant.name for variant in experiment.variants}, set(experiment.workloads)
    readings = defaultdict(list)
    for reading in experiment.durability:
        readings[reading.variant].append(reading)

    @cache
    def is_doubtful(baseline: str, variant: str) -> bool:
        of_both = dict.fromkeys((baseline, variant))
        concerned = tuple(reading for name in of_both for reading in readings[name])
        return bool(concerned and doubts(replace(experiment, durability=concerned), baseline, variant))

    for verdict in experiment.verdicts:
        if verdict.workload not in workloads or verdict.variant not in variants:
            yield f'a verdict is on "{verdict.variant}" under "{verdict.workload}", not both of which exist'
        elif verdict.baseline not in variants:
            yield f'a verdict is against "{verdict.baseline}", which is not one of its variants'
        elif not verdict.is_withheld and is_doubtful(verdict.baseline, verdict.variant):
            yield f'a verdict is on "{verdict.variant}", but its server was less durable than the variant'


def _of_design(experiment: Experiment) -> Iterator[str]:
    design = experiment.design
    shares = {"level": design.level, "margin": design.equivalence_margin, "power": design.power}
    yield from (f"the {name} of its design is {value}" for name, value in shares.items() if not 0 < value < 1)
    for verdict in experiment.verdicts:
        bounds = verdict.interval
        if bounds is not None and not 0 < bounds.low <= bounds.point <= bounds.high < math.inf:
            yield f"the interval of {verdict.metric} under {verdict.workload} is not that of a ratio"


def _of_blocks(experiment: Experiment) -> Iterator[str]:
    variants, workloads = {variant.name for variant in experiment.variants}, set(experiment.workloads)
    seen: set[tuple[str, int, int]] = set()
    for block in experiment.blocks:
        place = (block.workload, block.round, block.index)
        name = f"block {block.index + 1} of round {block.round + 1} of {block.workload}"
        if block.workload not in workloads:
            yield f"{name} has an unknown workload"
        if place in seen:
            yield f"{name} exists twice"
        if not (0 <= block.round < _MOST and 0 <= block.index < _MOST and abs(block.started_ns) < _LARGEST):
            yield f"{name} has an impossible number or time"
        seen.add(place)
        yield from (
            f"{name}: {audited} is not finite"
            for audited, value in block.audit.items()
            if not math.isfinite(value)
        )
        yield from (f"{name}: {problem}" for problem in _of_arms(block, variants))


def _of_arms(block: Block, variants: set[str]) -> Iterator[str]:
    for arm in block.arms:
        if arm.variant not in variants:
            yield f'it has an arm "{arm.variant}", which is not one of the variants'
        yield from (f"{name} of {arm.variant} {why}" for name, why in _impossible(arm))


def _impossible(arm: ArmBlock) -> Iterator[tuple[str, str]]:
    """Yield the names of impossible figures, and why.

    A rate of 0 is possible if nothing completed. Counters may decrease when processes exit, so only values
    from clocks must not be negative.
    """
    for name, value in {"running_s": arm.running_s, **arm.values, **arm.audit}.items():
        if not math.isfinite(value):
            yield name, "is not finite"
        elif value < 0 and (name in {"running_s", THROUGHPUT} or name.startswith(_LATENCY)):
            yield name, f"is {value:g}, below 0"
        elif value == 0 and name == THROUGHPUT and arm.transactions > 0:
            yield name, f"is 0, of {arm.transactions} transactions"
    yield from (
        ("failures", f"are {one.count} of SQLSTATE {one.sqlstate[:5]}, an impossible number")
        for one in arm.failures
        if not 0 < one.count < _LARGEST
    )
    if arm.transactions < 0:
        yield "transactions", f"is {arm.transactions}, below 0"


_ERROR = 1e-3  # tolerance: twice the largest error of a histogram with 3 significant digits
_QUANTILES = {P50: 0.50, P95: 0.95, P99: 0.99}
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
