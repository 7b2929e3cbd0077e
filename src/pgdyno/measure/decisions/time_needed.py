"""Estimate an experiment's duration before it starts. Pure.

    round        = arms x (start + warm-up x workloads) + blocks x turns x slice, a little longer
    stretches    = two arms x write workloads x stretch, in a few of the rounds
    preparation  = inspecting the server and the machine + loading data that are not loaded yet

Warm-ups, blocks and turns come from the design. The rest are guesses, good enough to distinguish five rounds
from two. The measured duration of the first round replaces them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.measure.decisions.stopping import as_even, minimum_rounds
from pgdyno.measure.design.schedule import stretches_s, turns_of
from pgdyno.model.experiments.experiment import STRETCH_ROUNDS, Design, DesignKind
from pgdyno.model.experiments.workload import DataSet, Workload

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
