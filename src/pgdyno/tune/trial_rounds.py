"""Measure rounds of a search: two or three servers side by side, on every workload.

A round's figure is a mean over workloads, blocks and slices. Nothing of it is kept but that figure: what a
search finds is proven afterwards by an experiment of its own, which keeps everything.
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
from pgdyno.model.tuning.space import Point, Space, at_point
from pgdyno.model.tuning.tuning import RoundRatios, TrialRound
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.sharing import side_by_side, with_pools_for
from pgdyno.tune.search.noise import SIDE_BY_SIDE
from pgdyno.tune.search.searching import CandidateFailedError

DEFAULT, INCUMBENT, CANDIDATE = "default", "incumbent", "candidate"
_MOST_LOSSES = 3  # of a load host in one round

Counted: TypeAlias = Mapping[str, Sequence[Block]]
"""The blocks that count, by workload."""


@dataclass
class TrialRounds:
    """Measures rounds on one arena. ``number`` counts them, so that servers change their seats.

    ``space`` says what each point has besides. ``disturbed`` counts rounds that would not count in an
    experiment, and were taken all the same. ``expected_noise`` is that of a round, until some are measured.
    ``notes`` tell of load hosts, and of those that were lost: ``after_loss``.
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
        """Begin with the design's seed."""
        self.random = np.random.default_rng(self.design.seed)

    def trial(self, incumbent: Point, candidate: Point) -> TrialRound:
        """Measure the default, the incumbent and the candidate. Raises: CandidateFailedError."""
        others = {
            DEFAULT: replace(self.base, name=DEFAULT),
            **({INCUMBENT: self.variant(INCUMBENT, incumbent)} if incumbent else {}),
        }
        counted = self._beside(others, candidate)
        found = {workload: _ratios(_mean_logs(blocks)) for workload, blocks in counted.items()}
        return TrialRound(
            to_incumbent=_mean([one.to_incumbent for one in found.values()]),
            to_default=_mean([one.to_default for one in found.values()]),
            incumbent_to_default=_mean([one.incumbent_to_default for one in found.values()]),
            by_workload=found,
        )

    def pair(self, winner: Point, remaining: Point) -> tuple[float, ...]:
        """Measure two points; return ln(remaining / winner) by workload. Raises: CandidateFailedError."""
        counted = self._beside({INCUMBENT: self.variant(INCUMBENT, winner)}, remaining)
        logs = [_mean_logs(blocks) for blocks in counted.values()]
        return tuple(one[CANDIDATE] - one[INCUMBENT] for one in logs)

    def variant(self, name: str, point: Point) -> Variant:
        """Return a point, whole, as a variant, with a pool for its own shared memory."""
        made = at_point(self.base, name, self.space.whole(point))
        return with_pools_for(made, self.arena.shared_memory_bytes(made))

    def settled(self, point: Point) -> Point:
        """Return a point, whole, with the pool that its server had."""
        settings = self.variant(CANDIDATE, point).settings
        return {key: settings.get(key, value) for key, value in self.space.whole(point).items()}

    def _beside(self, others: Mapping[str, Variant], candidate: Point) -> Counted:
        """Measure a candidate beside others.

        Raises: CandidateFailedError if the servers do not run with the candidate, but without it.
        """
        try:
            tried = self.variant(CANDIDATE, candidate)
            self.arena.check([tried])
            counted = self._round([*others.values(), tried])
        except LoadHostLostError:
            raise
        except (ServerError, SettingError, GeneratorFailedError, MeasurementError) as error:
            self._round([*others.values()])  # else it is not the candidate's fault, and this says so
            said = f"{error.message} ({', '.join(f'{k}={v}' for k, v in candidate.items())})"
            raise CandidateFailedError(said) from error
        _require_as_few_failures(counted, others)
        return counted

    def _round(self, wanted: Sequence[Variant]) -> Counted:
        """Measure these servers once.

        A round that does not count is repeated once. If that does not count either, it is taken as it is:
        what disturbs takes from all servers alike.
        """
        variants = side_by_side(wanted).variants
        names = [one.name for one in variants]
        if counted := _counting(self._blocks(variants), names):
            return counted
        blocks = self._blocks(variants)
        return _counting(blocks, names) or self._disturbed(blocks, names)

    def _disturbed(self, blocks: Sequence[Block], names: Sequence[str]) -> Counted:
        """Return all blocks. Raises: MeasurementError if a server did nothing at all."""
        self.disturbed += 1
        if counted := _counting([_counted(block) for block in blocks], names):
            return counted
        reasons = [reason for block in blocks for reason in block.void_reasons]
        raise MeasurementError(reasons[0] if reasons else "a server did nothing")

    def _blocks(self, variants: Sequence[Variant]) -> list[Block]:
        """Return the blocks of a round. One in which a load host was lost is repeated.

        Raises: LoadHostLostError if one is lost each time, or not back in time.
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
        """Go on with the load hosts that there are. Raises: LoadHostLostError."""
        why = (lost.detail or lost.message).splitlines()[-1]
        self.progress.step(f"a round does not count: load host {lost.host} was lost ({why})")
        regained = self.after_loss(self.arena, lost)
        assert isinstance(regained.arena, ScratchArena)  # noqa: S101 — others have no load hosts
        self.arena = regained.arena
        self.notes.append(f'load host "{lost.host}" was lost in the search: {regained.how}')

    def _measured(self, variants: Sequence[Variant]) -> tuple[list[Block], list[LoadHostLostError]]:
        """Return the blocks of a round, and the load host that was lost in it, if one was."""
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
    """Raise CandidateFailedError if it is shown that too many more transactions fail on the candidate."""
    for workload, blocks in counted.items():
        for other in others:
            if is_shown(blocks, workload, CANDIDATE, other):
                raise CandidateFailedError(f"{workload}: {doubts(blocks, workload, CANDIDATE, other)}")


def _ratios(logs: Mapping[str, float]) -> RoundRatios:
    """Return the candidate's ratios on one workload; without an incumbent the default is in its place."""
    new, default = logs[CANDIDATE], logs[DEFAULT]
    old = logs.get(INCUMBENT, default)
    return RoundRatios(new - old, new - default, old - default)


def _counting(blocks: Sequence[Block], names: Sequence[str]) -> Counted:
    """Return the blocks that count; nothing if a workload has none."""
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


def _counted(block: Block) -> Block:
    """Return a block as if it had not been disturbed."""
    return replace(block, void=None, arms=tuple(replace(arm, void=None) for arm in block.arms))


def _log_of(block: Block, name: str) -> float:
    return next(math.log(arm.values[THROUGHPUT]) for arm in block.arms if arm.variant == name)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
