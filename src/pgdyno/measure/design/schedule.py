"""The order in which arms take turns.

Two arms follow a randomised ABBA: each group of four slices is ABBA or BAAB, drawn at random. Within a
group both arms then have the same mean position in time, so that a linear drift cancels exactly.

More arms follow balanced Latin squares: within a square every arm stands once at every place and, for an
even number of arms, follows every other arm equally often (Williams, 1949, "Experimental designs balanced for
the estimation of residual effects of treatments"); the arms' labels are drawn anew for each square.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
from numpy.random import Generator
from numpy.random import Generator as Random

from pgdyno.model.experiments.experiment import Design, DesignKind, Slice
from pgdyno.model.experiments.workload import Workload

_MANY_ARMS = 9
_CONNECTION = 41  # a stream of random numbers of its own
_WINDOW_S = 1.0  # the least in which ticks cannot exceed half of the limit of 10 %
_TRIAL_S = 10.0


def turns_of(arms: int, design: Design) -> int:
    """Return how many slices a block has: as many as fit its length, rounded up to whole balanced groups."""
    group = _group(arms)
    return math.ceil(max(arms, round(design.block_s / design.slice_s)) / group) * group


def for_arms(arms: int, design: Design) -> Design:
    """Return the design for a study that stands many servers side by side: as many blocks, one a round.

    A square of nine arms or more is as long as several blocks of few, and rounds tell more than blocks: each
    has servers of its own.
    """
    if arms < _MANY_ARMS or design.kind is DesignKind.ALTERNATING:
        return design
    return replace(design, rounds=design.rounds * design.blocks_per_round, blocks_per_round=1)


def window_ends(arms: int, slices: int, slice_s: float) -> frozenset[int]:
    """Return the slices, counted from 0, after which the CPUs are read: windows of whole balanced groups.

    /proc/stat counts in ticks of 10 ms, five kinds of work on each CPU: in a group of 200 ms the ticks alone
    can make up a quarter of the CPU time, in a second 5 %. What is left at the end joins the last window.
    """
    group = _group(arms)
    length = math.ceil(_WINDOW_S / (group * slice_s)) * group
    return frozenset([*range(length - 1, slices - length, length), slices - 1])


def writing_time_s(
    workloads: Sequence[Workload], design: Design, arms: int, *, has_stretch: bool = False
) -> float:
    """Return how long each arm's server is written to in a round, warm-ups included.

    Steps of a longer workload have no length that is known before, and are left out.
    """
    at_a_time, writing = (1 if design.kind is DesignKind.ALTERNATING else arms), design.for_writing()
    block_s = turns_of(at_a_time, writing) * writing.slice_s
    each_s = design.warmup_s + design.blocks_per_round * block_s / at_a_time
    each_s += design.stretch_s if has_stretch else 0.0
    return each_s * sum(not (workload.is_read_only or workload.step) for workload in workloads)


def stretches_s(workloads: Sequence[Workload], design: Design) -> float:
    """Return how long the stretches of two servers take in a round that has them."""
    return 2 * design.stretch_s * sum(not (one.is_read_only or one.step) for one in workloads)


def slice_order(arms: int, slices: int, random: Generator) -> tuple[int, ...]:
    """Return which arm runs in each slice, every arm equally often.

    Shapes: a tuple of at least ``slices`` arm indices, rounded up to whole balanced groups.
    """
    if arms == 1:
        return (0,) * slices
    order: list[int] = []
    while len(order) < slices:
        order += _abba(random) if arms == 2 else _latin_square(arms, random)
    return tuple(order)


def balanced_slices(arms: int, slices: Sequence[Slice]) -> tuple[Slice, ...]:
    """Return the slices up to the last but one whole group, for a block that was cut short.

    The last group is left out too: a generator that was killed had its latest log lines still in memory.
    """
    group = _group(arms)
    return tuple(slices[: max(0, len(slices) // group - 1) * group])


def trial_order(arms: int, random: Generator) -> tuple[int, ...]:
    """Return the arms of one alternating block in random order."""
    return tuple(int(arm) for arm in random.permutation(arms))


def seats(arms: int, round_index: int) -> tuple[int, ...]:
    """Return each arm's seat (data copy, start order) in a round; over k rounds every arm has every seat."""
    return tuple((arm + round_index) % arms for arm in range(arms))


def connection_order(arms: int, seed: int, round_index: int) -> tuple[int, ...]:
    """Return the arms in the order in which their loads connect and warm up in a round.

    It is drawn for every four rounds, in two of which it is reversed: each of two arms then comes first as
    often as last, in either seat.
    """
    group, place = divmod(round_index, 4)
    drawn = np.random.default_rng((seed, group, _CONNECTION)).permutation(arms).tolist()
    return tuple(drawn) if place in (0, 3) else tuple(reversed(drawn))


def _group(arms: int) -> int:
    """Return the number of slices in a balanced group: one arm alone, ABBA, or a Latin square."""
    return 1 if arms == 1 else 4 if arms == 2 else arms * arms


def _abba(random: Generator) -> list[int]:
    first = int(random.integers(2))
    return [first, 1 - first, 1 - first, first]


def _latin_square(arms: int, random: Generator) -> list[int]:
    """Return the rows of one Williams square, concatenated, with randomly drawn labels."""
    labels = random.permutation(arms)
    zigzag = [(step + 1) // 2 if step % 2 else -(step // 2) for step in range(arms)]
    rows = [[int(labels[(start + offset) % arms]) for offset in zigzag] for start in range(arms)]
    return [arm for row in np.array(rows)[random.permutation(arms)].tolist() for arm in row]


def alternating(design: Design, trial_s: float | None = None) -> Design:
    """Return the design with whole trials instead of slices: one arm's server at a time."""
    length_s = _TRIAL_S if trial_s is None else trial_s
    return replace(
        design,
        kind=DesignKind.ALTERNATING,
        slice_s=length_s,
        writing_slice_s=None,
        block_s=length_s,
        blocks_per_round=1,
        head_s=length_s / 20,
        stretch_s=0.0,  # every trial has its server alone
    )


def in_trials(design: Design) -> Design:
    """Return the design for variants found to need whole trials.

    Trials last as long as requested blocks.
    """
    return alternating(design, None if design.block_s == Design().block_s else design.block_s)


def workloads_by_server(workloads: Sequence[Workload]) -> list[list[Workload]]:
    """Group workloads that can share started servers, read-only ones first."""

    def servers(workload: Workload) -> tuple[str, int]:
        return workload.data_set.key, workload.server_memory_bytes or 0

    ordered = sorted(workloads, key=lambda w: (*servers(w), not w.is_read_only))
    return [list(group) for _, group in groupby(ordered, key=servers)]


def in_random_order(workloads: Sequence[Workload], random: Random) -> list[Workload]:
    """Shuffle the cells of a grid, so that time is not taken for a size's or the clients' effect.

    Those that only read still come first.
    """
    if not all(workload.cell for workload in workloads):
        return list(workloads)
    shuffled = [workloads[index] for index in random.permutation(len(workloads))]
    return sorted(shuffled, key=lambda workload: not workload.is_read_only)
