"""Measure rounds of a search: two or three servers side by side, on every workload.

A round's figure is a mean over workloads, blocks and slices. Nothing of it is kept but that figure: what a
search finds is proven afterwards by an experiment of its own, which keeps everything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import Generator as Random

from pgdyno.app.arenas.scratch_arena import ScratchArena
from pgdyno.app.measuring.experiment import workloads_by_server
from pgdyno.app.measuring.rounds import Running, run_round
from pgdyno.levers.engine.sharing import side_by_side
from pgdyno.levers.engine.sharing_memory import with_pools_for
from pgdyno.meters import load as load_meters
from pgdyno.model.errors import ServerError, SettingError, UsageError
from pgdyno.model.experiments.experiment import Block, Design
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.ports import Progress
from pgdyno.model.tuning.space import BUILD, Point
from pgdyno.model.tuning.tuning import TrialRound
from pgdyno.model.variants.variant import Variant
from pgdyno.search.searching import CandidateFailedError

DEFAULT, INCUMBENT, CANDIDATE = "default", "incumbent", "candidate"


@dataclass
class TrialRounds:
    """Measures rounds on one arena. ``number`` counts them, so that servers change their seats.

    ``disturbed`` counts those that other processes have disturbed, and that were taken all the same.
    """

    arena: ScratchArena
    base: Variant
    workloads: Mapping[str, Workload]
    design: Design
    progress: Progress
    number: int = 0
    disturbed: int = 0
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        """Begin with the design's seed."""
        self.random = np.random.default_rng(self.design.seed)

    def trial(self, incumbent: Point, candidate: Point) -> TrialRound:
        """Measure the default, the incumbent and the candidate. Raises: CandidateFailedError."""
        named = {
            DEFAULT: self.variant(DEFAULT, {}),
            CANDIDATE: self.variant(CANDIDATE, candidate),
        }
        if incumbent:
            named[INCUMBENT] = self.variant(INCUMBENT, incumbent)
        logs = self._round(named, candidate)
        return TrialRound(
            to_incumbent=logs[CANDIDATE] - logs.get(INCUMBENT, logs[DEFAULT]),
            to_default=logs[CANDIDATE] - logs[DEFAULT],
            incumbent_to_default=logs.get(INCUMBENT, logs[DEFAULT]) - logs[DEFAULT],
        )

    def pair(self, winner: Point, remaining: Point) -> float:
        """Measure two points; return ln(remaining / winner). Raises: CandidateFailedError."""
        named = {
            INCUMBENT: self.variant(INCUMBENT, winner),
            CANDIDATE: self.variant(CANDIDATE, remaining),
        }
        logs = self._round(named, remaining)
        return logs[CANDIDATE] - logs[INCUMBENT]

    def variant(self, name: str, point: Point) -> Variant:
        """Return a point as a variant whose pool of huge pages holds its shared memory."""
        made = at_point(self.base, name, point)
        return with_pools_for(made, self.arena.shared_memory_bytes(made))

    def _round(self, named: Mapping[str, Variant], candidate: Point) -> Mapping[str, float]:
        """Return the mean logarithm of throughput by name.

        A round that was disturbed is repeated once; what is disturbed again is taken as it is, as other
        processes take from all servers alike.
        Raises: CandidateFailedError if the servers do not run with the candidate.
        """
        variants = side_by_side(tuple(named.values())).variants
        names = list(named)
        try:
            self.arena.check([one for one in variants if one.name == CANDIDATE])
            blocks = list(self._blocks(variants))
            logs: Mapping[str, float] = _mean_logs(blocks, names)
            if not logs:
                blocks = list(self._blocks(variants))
                logs = _mean_logs(blocks, names) or self._disturbed(blocks, names)
        except (ServerError, SettingError, UsageError) as error:
            said = f"{error.message} ({', '.join(f'{k}={v}' for k, v in candidate.items())})"
            raise CandidateFailedError(said) from error
        return logs

    def _disturbed(self, blocks: Sequence[Block], names: Sequence[str]) -> Mapping[str, float]:
        """Return the means over all blocks. Raises: CandidateFailedError if a server did nothing at all."""
        self.disturbed += 1
        if logs := _mean_logs([_counted(block) for block in blocks], names):
            return logs
        reasons = [reason for block in blocks for reason in block.void_reasons]
        raise CandidateFailedError(reasons[0] if reasons else "a server did nothing")

    def _blocks(self, variants: Sequence[Variant]) -> Iterator[Block]:
        design = self.design
        names = tuple(self.workloads)
        study = Study("tune", "Which configuration is best?", tuple(variants), names, design)
        with ExitStack() as stack:
            arena = stack.enter_context(self.arena.prepared_for(study))
            running = self._running(arena, variants)
            for group in workloads_by_server([*self.workloads.values()]):
                yield from run_round(running, self.number, group)
                arena.loads.forget(running.experiment_id)
        self.number += 1

    def _running(self, arena: ScratchArena, variants: Sequence[Variant]) -> Running:
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


def at_point(base: Variant, name: str, point: Point) -> Variant:
    """Return a point as a variant of the configuration as found."""
    settings = {key: value for key, value in point.items() if key != BUILD}
    return replace(
        base,
        name=name,
        settings={**base.settings, **settings},
        server=point.get(BUILD, base.server),
    )


def _mean_logs(blocks: Sequence[Block], names: Sequence[str]) -> dict[str, float]:
    """Return the means over the blocks that count, of each workload first; nothing if one has none."""
    by_workload: dict[str, list[Block]] = {}
    for block in blocks:
        counts = by_workload.setdefault(block.workload, [])
        values = [arm.values.get(THROUGHPUT, 0.0) for arm in block.arms]
        if not block.void_for(*names) and all(value > 0 for value in values):
            counts.append(block)
    if not all(by_workload.values()):
        return {}
    return {
        name: _mean([_mean([_log_of(block, name) for block in counted]) for counted in by_workload.values()])
        for name in names
    }


def _counted(block: Block) -> Block:
    """Return a block as if it had not been disturbed."""
    return replace(block, void=None, arms=tuple(replace(arm, void=None) for arm in block.arms))


def _log_of(block: Block, name: str) -> float:
    return next(math.log(arm.values[THROUGHPUT]) for arm in block.arms if arm.variant == name)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
