"""Measure rounds of a search: two or three servers side by side, on every workload.

A round's figure is a mean over workloads, blocks and slices. Only that figure is kept: the result of a search
is proven afterwards by a separate experiment, which keeps everything.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.random import Generator as Random

from pgdyno.base.errors import (
    GeneratorFailedError,
    LoadHostLostError,
    MeasurementError,
    ServerError,
    SettingError,
)
from pgdyno.base.ports import Progress
from pgdyno.measure.arenas.arena import AfterLoss, Arena, end_without_host
from pgdyno.measure.arenas.attached_arena import AttachedArena
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.measure.design.schedule import workloads_by_server
from pgdyno.measure.meters import load as load_meters
from pgdyno.measure.rounds import Running, run_round
from pgdyno.measure.verdicts.failures import doubts, is_shown
from pgdyno.model.experiments.experiment import Block, Design
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.tuning.tuning import Point, RoundRatios, Space, TrialRound, at_point
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.sharing import side_by_side, with_pools_for
from pgdyno.tune.search.race import SIDE_BY_SIDE
from pgdyno.tune.search.searching import CandidateFailedError

DEFAULT, INCUMBENT, CANDIDATE = "default", "incumbent", "candidate"
_MOST_LOSSES = 3  # of a load host in one round

Counted: TypeAlias = Mapping[str, Sequence[Block]]
"""The blocks that count, by workload."""


@dataclass
class TrialRounds:
    """Measures rounds on one arena. ``number`` is their number; servers change their places by it.

    ``space`` has the additional values of each point. ``disturbed`` is the number of rounds that were used
    although an experiment would not count them. ``expected_noise`` is the assumed noise of a round, until it
    has been measured. ``notes`` are about load hosts, and those that were lost: ``after_loss``.
    """

    arena: ScratchArena | AttachedArena
    base: Variant
    space: Space
    workloads: Mapping[str, Workload]
    design: Design
    progress: Progress
    number: int = 0
    disturbed: int = 0
    expected_noise: float = SIDE_BY_SIDE
    after_loss: AfterLoss = end_without_host
    notes: list[str] = field(default_factory=list)
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        """Seed the random numbers from the design."""
        self.random = np.random.default_rng(self.design.seed)

    def trial(self, incumbent: Point, candidate: Point) -> TrialRound:
        """Measure the default, the incumbent and the candidate. Raises: CandidateFailedError."""
        others = {
            DEFAULT: replace(self.base, name=DEFAULT),
            **({INCUMBENT: self.variant(INCUMBENT, incumbent)} if incumbent else {}),
        }
        counted = self._compared(others, candidate)
        found = {workload: _ratios(_mean_logs(blocks)) for workload, blocks in counted.items()}
        return TrialRound(
            to_incumbent=_mean([one.to_incumbent for one in found.values()]),
            to_default=_mean([one.to_default for one in found.values()]),
            incumbent_to_default=_mean([one.incumbent_to_default for one in found.values()]),
            by_workload=found,
        )

    def pair(self, winner: Point, remaining: Point) -> tuple[float, ...]:
        """Measure two points; return ln(remaining / winner) by workload. Raises: CandidateFailedError."""
        counted = self._compared({INCUMBENT: self.variant(INCUMBENT, winner)}, remaining)
        logs = [_mean_logs(blocks) for blocks in counted.values()]
        return tuple(one[CANDIDATE] - one[INCUMBENT] for one in logs)

    def variant(self, name: str, point: Point) -> Variant:
        """Return a point as a variant, with the space's additional values and a pool of huge pages."""
        made = at_point(self.base, name, self.space.whole(point))
        return with_pools_for(made, self.arena.shared_memory_bytes(made))

    def settled(self, point: Point) -> Point:
        """Return a point with the space's additional values and its server's pool of huge pages."""
        settings = self.variant(CANDIDATE, point).settings
        return {key: settings.get(key, value) for key, value in self.space.whole(point).items()}

    def _compared(self, others: Mapping[str, Variant], candidate: Point) -> Counted:
        """Measure a candidate together with others.

        Raises: CandidateFailedError if the servers run only without the candidate.
        """
        try:
            tried = self.variant(CANDIDATE, candidate)
            self.arena.check([tried])
            counted = self._round([*others.values(), tried])
        except LoadHostLostError:
            raise
        except (ServerError, SettingError, GeneratorFailedError, MeasurementError) as error:
            self._round([*others.values()])  # raises if the candidate is not the cause
            reason = f"{error.message} ({', '.join(f'{k}={v}' for k, v in candidate.items())})"
            raise CandidateFailedError(reason) from error
        _require_as_few_failures(counted, others)
        return counted

    def _round(self, wanted: Sequence[Variant]) -> Counted:
        """Measure these servers once.

        A round that does not count is repeated once. If the second does not count either, it is used anyway:
        disturbances affect all servers alike.
        """
        variants = side_by_side(wanted).variants
        names = [one.name for one in variants]
        if counted := _counting(self._blocks(variants), names):
            return counted
        blocks = self._blocks(variants)
        return _counting(blocks, names) or self._disturbed(blocks, names)

    def _disturbed(self, blocks: Sequence[Block], names: Sequence[str]) -> Counted:
        """Return all blocks as valid. Raises: MeasurementError if a server completed no transactions."""
        self.disturbed += 1
        if counted := _counting([_without_void(block) for block in blocks], names):
            return counted
        reasons = [reason for block in blocks for reason in block.void_reasons]
        raise MeasurementError(reasons[0] if reasons else "a server completed no transactions")

    def _blocks(self, variants: Sequence[Variant]) -> list[Block]:
        """Return the blocks of a round. A round in which a load host was lost is repeated.

        Raises: LoadHostLostError if one is lost every time, or does not return in time.
        """
        for left in reversed(range(_MOST_LOSSES)):
            blocks, lost = self._measured(variants)
            if not lost:
                break
            if not left:
                raise lost[0]
            self._regain(lost[0])
        return blocks

    def _regain(self, lost: LoadHostLostError) -> None:
        """Continue with the available load hosts. Raises: LoadHostLostError."""
        why = (lost.detail or lost.message).splitlines()[-1]
        self.progress.step(f"a round does not count: load host {lost.host} was lost ({why})")
        regained = self.after_loss(self.arena, lost)
        assert isinstance(regained.arena, ScratchArena)  # noqa: S101 — only these have load hosts
        self.arena = regained.arena
        self.notes.append(f'load host "{lost.host}" was lost in the search: {regained.how}')

    def _measured(self, variants: Sequence[Variant]) -> tuple[list[Block], list[LoadHostLostError]]:
        """Return the blocks of a round, and the load host lost during it, if any."""
        design, blocks = self.design, list[Block]()
        names = tuple(self.workloads)
        study = Study("tune", "Which configuration is best?", tuple(variants), names, design)
        with ExitStack() as stack:
            whole: Arena = self.arena
            arena = stack.enter_context(whole.prepared_for(study))
            running = self._running(arena, variants)
            for group in workloads_by_server([*self.workloads.values()]):
                blocks += run_round(running, self.number, group)
                arena.loads.forget(running.experiment_id)
        self.number += 1
        return blocks, running.lost

    def _running(self, arena: Arena, variants: Sequence[Variant]) -> Running:
        return Running(
            experiment_id="tune",
            arena=arena,
            variants=variants,
            design=self.design,
            meters=load_meters(),
            random=self.random,
            keep_slice=lambda *_: None,
            keep_counts=lambda *_: None,
            look_at=lambda _: None,
            read_durability=lambda _: None,
            announce=self.progress.step,
            changed=frozenset(one.data_set.key for one in self.workloads.values() if not one.is_read_only),
        )


def _require_as_few_failures(counted: Counted, others: Collection[str]) -> None:
    """Raise CandidateFailedError if significantly more transactions fail on the candidate than allowed."""
    for workload, blocks in counted.items():
        for other in others:
            if is_shown(blocks, workload, CANDIDATE, other):
                raise CandidateFailedError(f"{workload}: {doubts(blocks, workload, CANDIDATE, other)}")


def _ratios(logs: Mapping[str, float]) -> RoundRatios:
    """Return the candidate's ratios on one workload; without an incumbent the default replaces it."""
    new, default = logs[CANDIDATE], logs[DEFAULT]
    old = logs.get(INCUMBENT, default)
    return RoundRatios(new - old, new - default, old - default)


def _counting(blocks: Sequence[Block], names: Sequence[str]) -> Counted:
    """Return the blocks that count; empty if any workload has none."""
    by_workload: dict[str, list[Block]] = {}
    for block in blocks:
        counts = by_workload.setdefault(block.workload, [])
        values = [arm.values.get(THROUGHPUT, 0.0) for arm in block.arms]
        if not block.void_for(*names) and all(value > 0 for value in values):
            counts.append(block)
    return by_workload if all(by_workload.values()) else {}


def _mean_logs(blocks: Sequence[Block]) -> dict[str, float]:
    """Return the mean logarithm of each server's throughput, by name."""
    names = [arm.variant for arm in blocks[0].arms]
    return {name: _mean([_log_of(block, name) for block in blocks]) for name in names}


def _without_void(block: Block) -> Block:
    return replace(block, void=None, arms=tuple(replace(arm, void=None) for arm in block.arms))


def _log_of(block: Block, name: str) -> float:
    return next(math.log(arm.values[THROUGHPUT]) for arm in block.arms if arm.variant == name)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
