"""The order in which arms take turns.

Two arms follow a randomised ABBA: each group of four slices is ABBA or BAAB, drawn at random. Within a
group both arms have the same mean position in time, so a linear drift cancels exactly.

More arms follow balanced Latin squares: within a square every arm has every position once and, for an even
number of arms, follows every other arm equally often (Williams, 1949, "Experimental designs balanced for the
estimation of residual effects of treatments"). The arms' labels are drawn at random for each square.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
from numpy.random import Generator
from numpy.random import Generator as Random

from pgdyno.model.experiments.experiment import Design, DesignKind
from pgdyno.model.experiments.slices import Slice
from pgdyno.model.experiments.workload import Workload

_MANY_ARMS = 9
_CONNECTION = 41  # seed of a separate random stream
_COUNTED_PART = 4  # the inverse: counting takes 2 % of the throughput, so 0.5 % in all
_WINDOW_S = 1.0  # the shortest in which ticks stay below half of the 10 % limit
_TRIAL_S = 10.0


def turns_of(arms: int, design: Design) -> int:
    """Return the number of slices in a block: its length, rounded up to whole balanced groups."""
    group = _group(arms)
    return math.ceil(max(arms, round(design.block_s / design.slice_s)) / group) * group


def for_arms(arms: int, design: Design) -> Design:
    """Return the design for many servers at the same time: the same number of blocks, one per round.

    A square of nine or more arms is as long as several blocks of few arms. Rounds carry more information than
    blocks, because each round starts new servers.
    """
    if arms < _MANY_ARMS or design.kind is DesignKind.ALTERNATING:
        return design
    return replace(design, rounds=design.rounds * design.blocks_per_round, blocks_per_round=1)


def window_ends(arms: int, slices: int, slice_s: float) -> frozenset[int]:
    """Return the indices of slices after which the CPUs are read: windows are whole balanced groups.

    /proc/stat counts five kinds of work per CPU, in ticks of 10 ms. Rounding to ticks can amount to a quarter
    of the CPU time in a group of 200 ms, and to 5 % in a second. A remainder joins the last window.
    """
    group = _group(arms)
    length = math.ceil(_WINDOW_S / (group * slice_s)) * group
    return frozenset([*range(length - 1, slices - length, length), slices - 1])


def counted_turns(arms: int, slices: int) -> int:
    """Return the number of a block's first slices in which servers count statements: a quarter, balanced."""
    group = _group(arms)
    return max(1, slices // (_COUNTED_PART * group)) * group


def writing_time_s(
    workloads: Sequence[Workload], design: Design, arms: int, *, has_stretch: bool = False
) -> float:
    """Return the time in a round with writes to each arm's server, including warm-ups.

    Steps are left out: their duration is not known beforehand.
    """
    at_a_time, writing = (1 if design.kind is DesignKind.ALTERNATING else arms), design.for_writing()
    block_s = turns_of(at_a_time, writing) * writing.slice_s
    each_s = design.warmup_s + design.blocks_per_round * block_s / at_a_time
    each_s += design.stretch_s if has_stretch else 0.0
    return each_s * sum(not (workload.is_read_only or workload.step) for workload in workloads)


def stretches_s(workloads: Sequence[Workload], design: Design) -> float:
    """Return the duration of both servers' stretches in a round that has them."""
    return 2 * design.stretch_s * sum(not (one.is_read_only or one.step) for one in workloads)


def slice_order(arms: int, slices: int, random: Generator) -> tuple[int, ...]:
    """Return the arm of each slice; every arm has equally many.

    Shapes: a tuple of at least ``slices`` arm indices, rounded up to whole balanced groups.
    """
    if arms == 1:
        return (0,) * slices
    order: list[int] = []
    while len(order) < slices:
        order += _abba(random) if arms == 2 else _latin_square(arms, random)
    return tuple(order)


def balanced_slices(arms: int, slices: Sequence[Slice]) -> tuple[Slice, ...]:
    """Return the slices of a truncated block up to the last but one whole group.

    The last whole group is left out too: a killed generator had its latest log lines still in memory.
    """
    group = _group(arms)
    return tuple(slices[: max(0, len(slices) // group - 1) * group])


def trial_order(arms: int, random: Generator) -> tuple[int, ...]:
    """Return the arms of one alternating block in random order."""
    return tuple(int(arm) for arm in random.permutation(arms))


def seats(arms: int, round_index: int) -> tuple[int, ...]:
    """Return each arm's seat (data copy, start order) in a round; k rounds give every arm every seat."""
    return tuple((arm + round_index) % arms for arm in range(arms))


def connection_order(arms: int, seed: int, round_index: int) -> tuple[int, ...]:
    """Return the arms in the order in which their loads connect and warm up in a round.

    The order is drawn once per four rounds, and reversed in two of them: each of two arms is first as often
    as last, in either seat.
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
    """Return the concatenated rows of one Williams square, with randomly drawn labels."""
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
        stretch_s=0.0,  # in every trial, one server runs alone
    )


def in_trials(design: Design) -> Design:
    """Return the design for variants that need whole trials; a trial lasts as long as a requested block."""
    return alternating(design, None if design.block_s == Design().block_s else design.block_s)


def workloads_by_server(workloads: Sequence[Workload]) -> list[list[Workload]]:
    """Group workloads that can share started servers, read-only ones first."""

    def servers(workload: Workload) -> tuple[str, int]:
        return workload.data_set.key, workload.server_memory_bytes or 0

    ordered = sorted(workloads, key=lambda w: (*servers(w), not w.is_read_only))
    return [list(group) for _, group in groupby(ordered, key=servers)]


def in_random_order(workloads: Sequence[Workload], random: Random) -> list[Workload]:
    """Shuffle the cells of a grid, so that time trends are not confounded with data size or clients.

    Read-only cells still come first.
    """
    if not all(workload.cell for workload in workloads):
        return list(workloads)
    shuffled = [workloads[index] for index in random.permutation(len(workloads))]
    return sorted(shuffled, key=lambda workload: not workload.is_read_only)
