"""The use case ``profile``: account for a transaction's time, for one variant or two in turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.base.errors import ServerError, ServerStartError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.load.transaction_log import log_label
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.load import Loads
from pgdyno.measure.arenas.opening import kept_awake, open_scratch_arena
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.measure.blocks.transactions import parse_all
from pgdyno.measure.statement_counting import StatementCounting, counting, statement_names
from pgdyno.measure.view.awake_sentence import awake_sentence
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.failures import require_few
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import DRIVER, Workload
from pgdyno.model.variants.variant import Variant, require_durable, require_measurable
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.local_machine import machine_claimed
from pgdyno.postgres.sampling.statement_statistics import LIBRARY, WHOLE_TEXT
from pgdyno.profile.reading.cycle_sampling import (
    CYCLE_S,
    ArmTurns,
    PerfData,
    Processes,
    Profiling,
    counted_of,
    cycles_of,
    transactions_in,
)
from pgdyno.profile.reading.hardware_counting import find_hardware_counters
from pgdyno.profile.reading.layouts import sampled_layout
from pgdyno.profile.reading.recordings import open_recordings
from pgdyno.profile.reading.statement_work import Read, StatementWaits, read_plans_of_arm, times_of
from pgdyno.profile.records.profile_record import TransactionProfile
from pgdyno.profile.summary import Profiled, sum_up

_NAME = "profile"
_SAMPLES_PER_S = 4000  # arbitrary: 800 MB in 24 s
_NO_STATEMENTS = "statements are not distinguished: the server has no pg_stat_statements"


@dataclass(frozen=True)
class ProfileRequest:
    """A workload to profile, and its variants. ``as_booted`` is the reason not to keep idle CPUs awake."""

    variants: tuple[Variant, ...]
    workload: Workload
    installation: Installation | None
    design: Design
    cycles: int
    as_booted: str = ""


def profile(request: ProfileRequest, progress: Progress) -> tuple[TransactionProfile, ...]:
    """Profile a workload on scratch servers, one per variant.

    Raises: UsageError for a workload that pgdyno-driver does not issue as transactions; like measuring.
    """
    require_durable(request.variants)
    require_measurable(request.variants)
    _require_transactions(request.workload)
    with (
        machine_claimed(is_wanted=not request.as_booted or any(one.files for one in request.variants)),
        open_scratch_arena(
            request.installation, request.variants, progress, is_isolated=request.design.is_isolated
        ) as arena,
    ):
        awake, record = kept_awake(
            arena, lambda keeper: keeper.find(request.variants, request.as_booted), progress
        )
        question = "Where does a transaction's time go?"
        study = Study(_NAME, question, request.variants, (request.workload.name,), request.design)
        with awake.prepared_for(study) as prepared:
            try:
                found = _profiled(prepared, request, progress, is_counting=True)
            except ServerStartError as error:
                if LIBRARY not in (error.detail or ""):
                    raise
                found = _profiled(prepared, request, progress, is_counting=False)
    remark = awake_sentence(record)
    return tuple(replace(one, remarks=(remark, *one.remarks)) for one in found)


def is_profiled(workload: Workload) -> bool:
    """Return whether a workload consists of transactions issued by pgdyno-driver."""
    return workload.generator == DRIVER and not workload.step and not workload.statement


def _require_transactions(workload: Workload) -> None:
    if not is_profiled(workload):
        raise UsageError(
            f'the workload "{workload.name}" cannot be profiled',
            detail="only transactions issued by pgdyno-driver are profiled",
            hint="pgdyno profile sysbench-read-write, or the file of a captured workload",
        )


def _profiled(
    arena: ScratchArena, request: ProfileRequest, progress: Progress, *, is_counting: bool
) -> tuple[TransactionProfile, ...]:
    variants = tuple(map(counting, request.variants)) if is_counting else request.variants
    seats, data_set = range(len(variants)), request.workload.data_set
    for variant in variants:
        progress.step(f"preparing the data of {variant.name}")
        arena.load(variant, data_set)
    arena.restore(variants, seats, data_set, request.cycles * CYCLE_S)
    try:
        with arena.arms(variants, seats, data_set, request.workload.server_memory_bytes) as arms:
            return _of_arms(arena, arms, request, progress, is_counting=is_counting)
    finally:
        arena.discard(variants, seats, data_set)


def _of_arms(
    arena: ScratchArena,
    arms: Sequence[Arm],
    request: ProfileRequest,
    progress: Progress,
    *,
    is_counting: bool,
) -> tuple[TransactionProfile, ...]:
    design, workload, loads = request.design, request.workload, arena.loads
    labels = [log_label(_NAME, workload.name, 0, arm) for arm in range(len(arms))]
    lasting_s = design.warmup_s + request.cycles * CYCLE_S
    with ExitStack() as stack:
        name_of = statement_names(workload, loads.find_driver)
        statements = [StatementCounting.of(stack, arm, name_of) if is_counting else None for arm in arms]
        turns = stack.enter_context(
            closing(loads.prepare(arms, labels, workload, design, lasting_s, range(len(arms))))
        )
        progress.step("warming up")
        for arm in range(len(arms)):
            turns.warm_up(arm, design.warmup_s)
        processes = [Processes.of(arm, turns.pids(index), loads.split) for index, arm in enumerate(arms)]
        pids = [pid for one in processes for pid in (*one.sessions, *one.background)]
        recordings = stack.enter_context(open_recordings(loads.scratch, pids, _SAMPLES_PER_S, is_traced=True))
        hardware = find_hardware_counters(loads.scratch)
        profiling = Profiling(arms, processes, statements, turns, recordings, hardware)
        progress.step(f"profiling {workload.name}")
        taken = profiling.run(
            request.cycles, lambda done: progress.advance(done / request.cycles * lasting_s, lasting_s)
        )
        turns.end()
        recordings.end()
        progress.step("reading the recordings")
        remarks = (*recordings.remarks, *hardware.remarks, *(() if is_counting else (_NO_STATEMENTS,)))
        idle = frozenset((0, *loads.split.spinners))
        recorded = PerfData(tuple(recordings.stacks()), tuple(recordings.events()), idle)
        installations = map(arena.installation_of, request.variants)
        programs = [Path(one.program("postgres")).resolve() for one in installations]
        found = tuple(_results(request, profiling, taken, recorded, programs, remarks))
        progress.step("reading the plans of statements")
        return tuple(_with_plans(one, arm, workload, loads) for one, arm in zip(found, arms, strict=True))


def _with_plans(found: TransactionProfile, arm: Arm, workload: Workload, loads: Loads) -> TransactionProfile:
    if not found.statements:
        return found
    read = read_plans_of_arm(found.statements, arm, workload, loads)
    return replace(found, statements=read.statements, remarks=(*found.remarks, *read.remarks))


def _results(
    request: ProfileRequest,
    profiling: Profiling,
    taken: Sequence[ArmTurns],
    recorded: PerfData,
    programs: Sequence[Path],
    remarks: tuple[str, ...],
) -> Iterator[TransactionProfile]:
    for index, variant in enumerate(request.variants):
        log, processes = parse_all(profiling.turns.logs(index)), profiling.processes[index]
        require_few(variant.name, log.count, log.failures)
        cycles = cycles_of(taken[index], processes, log, recorded)
        clients = request.workload.clients or request.design.clients
        profiled = Profiled(variant.name, request.workload.name, clients, len(processes.cpus))
        counted = transactions_in(taken[index].statements, log)
        read = _statements(profiling.statements[index], counted, taken[index].statement_waits)
        found = sum_up(profiled, cycles, read.statements, (*remarks, *read.remarks))
        layout = sampled_layout(programs[index], cycles)
        yield replace(
            found,
            counted=counted_of(taken[index], profiling.hardware.events, log),
            layouts=(layout,) if layout else (),
        )


def _statements(counting: StatementCounting | None, transactions: int, waits: StatementWaits) -> Read:
    """Return the counted statements, and a remark if they cannot be read."""
    if counting is None or not transactions:
        return Read(())
    try:
        counted = counting.read(WHOLE_TEXT).values()
    except ServerError as error:  # PostgreSQL 12 does not count planning
        return Read((), (f"statements are not distinguished: {error.message}",))
    return Read(times_of(counted, transactions, waits, counting.name_of))
