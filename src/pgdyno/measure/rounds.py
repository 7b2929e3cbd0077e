"""Run one round: start new servers, measure every workload in blocks of slices.

    open arms → per workload: start loads, warm up, freeze
                              per block: read meters → slices → read meters
                              in some rounds, for write workloads: CHECKPOINT, stretches of two arms alone
                              stop loads (completes their logs), CHECKPOINT every arm (its debt)
              → attribute transactions to slices, build blocks (blocks/observation.py)

Logs are parsed after the generators have exited, never during a slice.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial

from numpy.random import Generator as Random

from pgdyno.base.errors import HugePagesError, LoadHostLostError, MeasurementError
from pgdyno.load.transaction_log import log_label
from pgdyno.measure.arenas.arena import Arena, OneArm, Passes
from pgdyno.measure.arenas.arm import Arm, meter_values
from pgdyno.measure.blocks.blocks import join_trials, with_trimmed_statements
from pgdyno.measure.blocks.observation import (
    ObservedArm,
    ObservedBlock,
    ObservedRun,
    build_blocks,
    counted_slices,
)
from pgdyno.measure.blocks.transactions import parse_all
from pgdyno.measure.degrees import DegreePlans, require_degree
from pgdyno.measure.design.schedule import connection_order, seats, trial_order, turns_of, writing_time_s
from pgdyno.measure.meters import MeterModule
from pgdyno.measure.observe import Observer, checkpoint_debt, observe_block, observe_stretches
from pgdyno.measure.statement_counting import EVICTED, StatementCounting, statement_names
from pgdyno.measure.statement_plans import used_plans
from pgdyno.model.experiments.experiment import STRETCH_ROUNDS, ArmBlock, Block, Design, DesignKind, Phase
from pgdyno.model.experiments.failures import require_few
from pgdyno.model.experiments.metric import TAIL_MEAN_ALONE, Readings
from pgdyno.model.experiments.slices import Slice
from pgdyno.model.experiments.statements import UsedPlans
from pgdyno.model.experiments.workload import DRIVER, Workload
from pgdyno.model.variants.variant import Variant

_BOOKKEEPING_S = 10.0  # bound on the time between two blocks; a generator's time limit includes it

KeepSlice = Callable[[str, int, int, Slice], None]
"""Stores a slice as soon as it ends: workload, round, block, slice."""
KeepCounts = Callable[[str, int, int, Sequence[Slice]], None]
"""Stores the counts of a block's slices: workload, round, block, slices."""


@dataclass(frozen=True)
class Running:
    """The context of a round."""

    experiment_id: str
    arena: Arena
    variants: Sequence[Variant]
    design: Design
    meters: Sequence[MeterModule]
    random: Random
    keep_slice: KeepSlice
    keep_counts: KeepCounts
    look_at: Callable[[Sequence[Arm]], None]  # called with every set of arms right after they start
    read_durability: Callable[[Sequence[Arm]], None]  # called at that moment, and after the load has ended
    announce: Callable[[str], None]  # reports progress of long steps
    changed: frozenset[str] = frozenset()  # keys of data sets that any workload changes
    passes: Passes | None = None  # measures the steps of a benchmark
    plans: DegreePlans = field(default_factory=DegreePlans)  # for workloads that vary the number of workers
    lost: list[LoadHostLostError] = field(default_factory=list)  # the lost load host, if any
    stretched: Counter[str] = field(default_factory=Counter)  # rounds with valid stretches, by workload
    is_counting: bool = False  # whether the servers count statements
    note_plans: Callable[[Sequence[UsedPlans]], None] = lambda _: None  # called in the first round
    note: Callable[[str], None] = lambda _: None  # called with a sentence on unknown or dropped data

    def has_stretch(self, workload: Workload, round_index: int) -> bool:
        """Whether this round has stretches, in which one server alone has load: until enough rounds count."""
        is_wanted = self.design.stretch_s > 0 and not workload.is_read_only and not workload.step
        few = self.stretched[workload.name] < STRETCH_ROUNDS and round_index < 2 * STRETCH_ROUNDS
        return is_wanted and few


def run_round(running: Running, round_index: int, workloads: Sequence[Workload]) -> list[Block]:
    """Run every block of one round over ``workloads``, which share one data set and memory limit.

    After the loss of a load host, only blocks that had already ended count.
    Raises: ServerError, GeneratorError, StorageError; the blocks of this round are then lost, others kept.
    """
    if running.lost:
        return _without_host(running, round_index, workloads)
    data_set = workloads[0].data_set
    arena, count, is_duet = running.arena, len(running.variants), running.design.kind is DesignKind.DUET
    places = seats(count, round_index)
    # A workload in another group, with another memory limit, may also have changed the data set.
    if data_set.key in running.changed or not arena.has_seats(running.variants, places, data_set):
        is_stretched = any(running.has_stretch(workload, round_index) for workload in workloads)
        writing_s = writing_time_s(workloads, running.design, count, has_stretch=is_stretched)
        arena.restore(running.variants, places, data_set, writing_s)
    if not is_duet:
        try:
            return _alternating_round(running, round_index, workloads, places)
        except LoadHostLostError as error:  # trials of a round are compared, so all need the same hosts
            running.lost.append(error)
            return _without_host(running, round_index, workloads)
    try:
        return _duet_round(running, round_index, workloads, places)
    except HugePagesError as error:
        if round_index == 0:  # the variant may be wrong, and nothing is lost yet
            raise
        running.announce(f"round {round_index + 1} does not count: {error.message}")
        return _void_blocks(running, round_index, workloads, error.message)


def _duet_round(
    running: Running, round_index: int, workloads: Sequence[Workload], places: Sequence[int]
) -> list[Block]:
    """Run all servers at once; they take turns.

    Raises: HugePagesError if the pages for a server are not available; nothing was measured then.
    """
    data_set, blocks = workloads[0].data_set, list[Block]()
    with running.arena.arms(running.variants, places, data_set, workloads[0].server_memory_bytes) as arms:
        running.look_at(arms)
        running.read_durability(arms)
        for position, workload in enumerate(workloads):
            try:
                found = _measure(running, round_index, workload, arms)
                blocks += map(with_trimmed_statements, found)
            except LoadHostLostError as error:
                running.lost.append(error)
                blocks += _without_host(running, round_index, workloads[position:])
                break
        running.read_durability(arms)
        _check_invariant(workloads, arms)
    return blocks


def _without_host(running: Running, round_index: int, workloads: Sequence[Workload]) -> list[Block]:
    """Return void blocks for a round in which a load host was lost."""
    return _void_blocks(running, round_index, workloads, f'load host "{running.lost[0].host}" was lost')


def _alternating_round(
    running: Running, round_index: int, workloads: Sequence[Workload], places: Sequence[int]
) -> list[Block]:
    """Run whole trials one after another in random order, each on a newly started server."""
    by_arm: dict[int, list[Block]] = {}
    for arm in trial_order(len(running.variants), running.random):
        alone = _alone(running, arm)
        try:
            by_arm[arm] = _trials(alone, round_index, workloads, places[arm])
        except HugePagesError as error:
            if round_index == 0:  # the variant may be wrong, and nothing is lost yet
                raise
            name, reason = running.variants[arm].name, error.message
            running.announce(f"round {round_index + 1}: {name} is left out: {reason}")
            by_arm[arm] = _void_blocks(alone, round_index, workloads, reason)
    trials = zip(*(by_arm[arm] for arm in sorted(by_arm)), strict=True)
    return [with_trimmed_statements(join_trials(parts)) for parts in trials]


def _alone(running: Running, arm: int) -> Running:
    """Return the context of one arm's trial; it stores slices under this arm's index."""

    def keep_slice(workload: str, round_index: int, block: int, one: Slice) -> None:
        running.keep_slice(workload, round_index, block, replace(one, arm=arm))

    def keep_counts(workload: str, round_index: int, block: int, slices: Sequence[Slice]) -> None:
        running.keep_counts(workload, round_index, block, [replace(one, arm=arm) for one in slices])

    variants = [running.variants[arm]]
    return replace(running, variants=variants, keep_slice=keep_slice, keep_counts=keep_counts)


def _trials(alone: Running, round_index: int, workloads: Sequence[Workload], place: int) -> list[Block]:
    """Measure every workload on the only variant's server.

    Raises: HugePagesError if the pages for it are not available; nothing was measured then.
    """
    data_set, memory_bytes = workloads[0].data_set, workloads[0].server_memory_bytes
    blocks: list[Block] = []
    with alone.arena.arms(alone.variants, [place], data_set, memory_bytes) as arms:
        alone.look_at(arms)
        alone.read_durability(arms)
        if workloads[0].step:
            blocks += _pass(alone, round_index, workloads, arms[0])
        else:
            for workload in workloads:
                blocks += _measure(alone, round_index, workload, arms)
        alone.read_durability(arms)
        _check_invariant(workloads, arms)
    if any(workload.disk_bytes for workload in workloads):  # disk space was required for one copy only
        alone.arena.discard(alone.variants, [place], data_set)
    return blocks


def _pass(alone: Running, round_index: int, workloads: Sequence[Workload], arm: Arm) -> list[Block]:
    """Measure all steps on the only arm, in a pass of their benchmark."""
    assert alone.passes is not None  # noqa: S101 — studies with steps define it
    on = OneArm(arm, alone.arena.loads, alone.design, round_index, alone.meters, alone.announce)
    return alone.passes.measured(on, workloads)


def _void_blocks(
    running: Running, round_index: int, workloads: Sequence[Workload], reason: str
) -> list[Block]:
    """Return void blocks for a round, or one variant's trials in it, that could not begin."""
    nothing = tuple(ArmBlock(variant.name, 0, 0.0, {}) for variant in running.variants)
    return [
        Block(workload.name, round_index, index, time.time_ns(), nothing, void=reason)
        for workload in workloads
        for index in range(1 if workload.step else running.design.blocks_per_round)
    ]


def _check_invariant(workloads: Sequence[Workload], arms: Sequence[Arm]) -> None:
    """Check the common invariant of the write workloads on every arm, if they have one.

    Raises: MeasurementError naming the arm that violates it: its figures are worthless.
    """
    writers = [workload for workload in workloads if not workload.is_read_only]
    invariants = {workload.invariant for workload in writers}
    kept = invariants.pop() if len(invariants) == 1 else None
    if kept is None:
        return
    for arm in arms:
        if not arm.holds(kept):
            names = " and ".join(workload.name for workload in writers)
            raise MeasurementError(
                f"{names} left wrong data on the server of {arm.variant.name}",
                detail=f"this is no longer true: {' '.join(kept.split())}",
                hint="this server loses or invents rows: do not trust its data or its figures",
            )


def _measure(running: Running, round_index: int, workload: Workload, arms: Sequence[Arm]) -> list[Block]:
    """Measure all blocks of one workload in this round, on running arms.

    Loads connect and warm up in an order drawn separately, so the last one, right before the first block, is
    not always the same arm or in the same seat.
    """
    if not workload.is_read_only:
        running = replace(running, design=running.design.for_writing())
    design = running.design
    block_s = 2 * turns_of(len(arms), design) * design.slice_s + _BOOKKEEPING_S
    has_stretch = running.has_stretch(workload, round_index)
    duration_s = len(arms) * (design.warmup_s + (design.stretch_s if has_stretch else 0.0))
    duration_s += design.blocks_per_round * block_s
    labels = [
        log_label(running.experiment_id, workload.name, round_index, index) for index in range(len(arms))
    ]
    for arm in arms:
        made_of = require_degree(arm, workload)
        if made_of and workload.cell:
            running.plans.add(workload.cell, made_of)
    order = connection_order(len(arms), design.seed, round_index)
    debts, stretches = list[Readings](), tuple[Slice, ...]()
    with ExitStack() as stack:
        statements = _counting(stack, running, round_index, workload, arms)
        observer = Observer(design, running.meters, running.arena.loads.split, running.random, statements)
        prepared = running.arena.loads.prepare(arms, labels, workload, design, duration_s, order)
        turns = stack.enter_context(closing(prepared))
        for index in order:
            turns.warm_up(index, design.warmup_s)
        keep = [
            partial(running.keep_slice, workload.name, round_index, index)
            for index in range(design.blocks_per_round)
        ]
        blocks = [observe_block(observer, arms, turns, keep_slice) for keep_slice in keep]
        _note_evictions(running, workload, blocks)
        if has_stretch:  # before the stretches, which blocks do not pay for
            debts = [checkpoint_debt(observer, arm) for arm in arms]
            stretches = observe_stretches(observer, arms, turns)
        turns.end()
    if not (workload.is_read_only or debts):
        debts = [checkpoint_debt(observer, arm) for arm in arms]
    observed = [
        ObservedArm(arm.variant, parse_all(turns.logs(index)), debts[index] if debts else {})
        for index, arm in enumerate(arms)
    ]
    # Not for trials: another variant's may be better. Not for a grid: other cells may be.
    if design.kind is DesignKind.DUET and round_index == 0 and workload.cell is None:
        best = min(range(len(arms)), key=lambda index: observed[index].transactions.failed_share)
        log = observed[best].transactions
        require_few(arms[best].variant.name, log.count, log.failures, arms[best].server.last_log_lines())
    run = _run_of(running, round_index, workload, observed, blocks, stretches)
    for index, block in enumerate(blocks):
        running.keep_counts(workload.name, round_index, index, counted_slices(run, block, design))
    built = build_blocks(run, design, running.arena.loads.split)
    if built[-1].void is None and TAIL_MEAN_ALONE in built[-1].arms[0].values:
        running.stretched[workload.name] += 1
    return built


def _counting(
    stack: ExitStack, running: Running, round_index: int, workload: Workload, arms: Sequence[Arm]
) -> list[StatementCounting]:
    if not running.is_counting:
        return []
    if round_index == 0:
        plans, notes = used_plans(arms, workload, running.arena.loads)
        running.note_plans(plans)
        for note in notes:
            running.note(f"{workload.name}: {note}")
    name_of = statement_names(workload, running.arena.loads.find_driver)
    return [StatementCounting.of(stack, arm, name_of) for arm in arms]


def _note_evictions(running: Running, workload: Workload, blocks: Sequence[ObservedBlock]) -> None:
    if any(block.has_evicted for block in blocks):
        running.note(f"{workload.name}: {EVICTED}")


def _run_of(
    running: Running,
    round_index: int,
    workload: Workload,
    arms: Sequence[ObservedArm],
    blocks: Sequence[ObservedBlock],
    stretches: Sequence[Slice],
) -> ObservedRun:
    statement = workload.statement
    return ObservedRun(
        workload.name,
        round_index,
        arms,
        blocks,
        is_drained=workload.generator == DRIVER,
        is_long=statement is not None,
        workers=statement.workers if statement else None,
        executions=workload.executions,
        is_whole_cycle=running.design.phase is Phase.CYCLE and not workload.is_read_only,
        stretches=stretches,
        metrics_of=partial(meter_values, running.meters),
    )
