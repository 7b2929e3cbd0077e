"""Recover an interrupted round from its stored slices and its generators' logs.

Slices are stored as they end, and logs stay on disk until their round has been read. So little more than the
running slice is lost. Recovered blocks are truncated to whole balanced groups (ABBA). They have no meter
values, which are read at a block's end. The CPU shares of other processes are stored with the slices and
judged as usual.

Not recovered, and run again: write workloads, because each arm's final checkpoint was not measured; long
transactions, because the last one is not in the log; and load from other hosts, because their logs arrive
only when the load ends.
"""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.load.transaction_log import TransactionLog, log_label
from pgdyno.measure.arenas.arena import Arena
from pgdyno.measure.blocks.observation import ObservedArm, ObservedBlock, ObservedRun, build_blocks
from pgdyno.measure.blocks.transactions import parse
from pgdyno.measure.design.schedule import balanced_slices
from pgdyno.model.experiments.experiment import CELL_OPTION, Block, DesignKind, Experiment
from pgdyno.model.experiments.workload import DRIVER, Workload
from pgdyno.store.experiments import ExperimentStore, Place


def recover(
    experiment: Experiment, store: ExperimentStore, arena: Arena, workloads: Mapping[str, Workload]
) -> list[Block]:
    """Return the blocks that can be built from stored slices without a block."""
    if experiment.design.kind is not DesignKind.DUET or CELL_OPTION in experiment.options:
        return []
    places = [place for place in store.unread(experiment.id) if _is_recoverable(workloads[place.workload])]
    runs = {(place.workload, place.round) for place in places}
    return [
        block
        for workload, round_index in sorted(runs)
        for block in _recover_run(
            experiment, store, arena, [p for p in places if (p.workload, p.round) == (workload, round_index)]
        )
    ]


def _is_recoverable(workload: Workload) -> bool:
    return workload.is_read_only and not workload.statement


def _recover_run(
    experiment: Experiment, store: ExperimentStore, arena: Arena, places: list[Place]
) -> list[Block]:
    count = len(experiment.variants)
    found = [store.slices(experiment.id, place.workload, place.round, place.block) for place in places]
    kept = [balanced for slices in found if (balanced := balanced_slices(count, slices))]
    if not kept:
        return []
    workload, round_index = places[0].workload, places[0].round
    arms = [
        ObservedArm(variant, parse(_log(arena, experiment.id, workload, round_index, arm)), {})
        for arm, variant in enumerate(experiment.variants)
    ]
    blocks = [ObservedBlock(slices[0].start_ns, tuple(slices), (), None, 0.0) for slices in kept]
    is_drained = experiment.generators.get(workload) == DRIVER
    run = ObservedRun(workload, round_index, arms, blocks, is_drained=is_drained)
    return build_blocks(run, experiment.design, arena.loads.split)


def _log(arena: Arena, experiment_id: str, workload: str, round_index: int, arm: int) -> bytes:
    label = log_label(experiment_id, workload, round_index, arm)
    return TransactionLog(arena.loads.log_prefix(label)).read_new()
