"""Measure a study: the common code of compare, bench, run and accelerate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial

from pgdyno.apply.allowed_files import require_allowed_files
from pgdyno.base import numbers
from pgdyno.base.errors import MemoryProofError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.host.kernel_file import display_name
from pgdyno.host.probing.spinners import burstable_type
from pgdyno.measure.arenas.opening import kept_awake, open_scratch_arena
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.measure.awake import AwakeKeeper, Keeping
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.design.requested import require_reachable
from pgdyno.measure.design.schedule import in_trials
from pgdyno.measure.experiment import ExperimentRun
from pgdyno.measure.records.new_experiment import Context
from pgdyno.model.cells.cell import CellHosts
from pgdyno.model.experiments.experiment import CELL_OPTION, DesignKind, Experiment, LoadHosts
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import require_measurable
from pgdyno.plan.engine.sharing import MEMORY_SHARE, not_shareable
from pgdyno.postgres.process.local_machine import available_memory_bytes, machine_claimed
from pgdyno.store.experiments import ExperimentStore, open_store

_ALONE_SHARE = 0.85  # for one server alone; the published configurations of the Insert Benchmark take 0.8


def measure(
    study: Study, conditions: Conditions, progress: Progress, context: Context | None = None
) -> Experiment:
    """Run a study on scratch servers and return the experiment.

    If a duet's servers do not fit into memory together, trials alternate instead, and a note states it.
    Raises: RefusedError for a server that would run in an emulator, or for a kernel file that may not be set;
    UsageError for a precision that is too fine; VariantError for a variant that cannot be measured;
    LockHeldError if another pgdyno, of any home, keeps this machine's CPUs awake; errors of measuring.
    """
    began = time.monotonic()
    require_measurable(study.variants)
    require_allowed_files(study.variants, conditions.allowed_files)
    _require_no_cell(study, conditions)
    with (
        machine_claimed(is_wanted=_changes_machine(study, conditions)),
        open_scratch_arena(
            conditions.installation,
            study.variants,
            progress,
            is_isolated=study.design.is_isolated,
        ) as opened,
        closing(open_store()) as store,
    ):
        placed = conditions.placed(opened, study, progress)
        arena, study = placed.arena, placed.study
        context = context or Context()
        if conditions.load_from is not None:
            context = _loaded_from(conditions.load_from.cell, context, placed.hosts)
        _require_disk(study, arena, conditions.workloads)
        arena.require_room(study.variants, [conditions.workloads[name] for name in study.workloads])
        _require_generators(study, arena, conditions.workloads)
        fitting = _with_fitting_design(study, arena, conditions.workloads)
        require_reachable(fitting.design)
        arena, awake = kept_awake(arena, partial(_keeping, study, conditions, store), progress)
        context = replace(
            context,
            awake=awake,
            burstable_type=burstable_type(arena.host_state.tree),
            allowed_files=_allowed(study, conditions),
        )
        run = ExperimentRun(
            replace(arena, accepts_builds=conditions.accepts_builds),
            store,
            progress,
            conditions.workloads,
            is_resumable=conditions.is_resumable,
            look=conditions.look,
            after_loss=placed.after_loss,
            passes=conditions.passes,
            accepts_unlike=conditions.accepts_unlike,
        )
        budget_s = conditions.budget_s
        if budget_s is not None:  # probing wake-ups has used some of it
            budget_s = max(0.0, budget_s - (time.monotonic() - began))
        return run.run(fitting, budget_s=budget_s, context=context, resume=conditions.resume)


def _require_no_cell(study: Study, conditions: Conditions) -> None:
    """Raise UsageError for SQL of a variant with load from other hosts."""
    changing = [variant.name for variant in study.variants if variant.statements]
    if changing and conditions.load_from is not None:
        raise UsageError(
            f"{changing[0]} runs SQL, which --cell does not support yet",
            hint="leave out --cell: compare the schemas with load from this machine",
        )


def _changes_machine(study: Study, conditions: Conditions) -> bool:
    """Whether measuring changes kernel files."""
    return not conditions.as_booted or any(variant.files for variant in study.variants)


def _allowed(study: Study, conditions: Conditions) -> tuple[str, ...]:
    """Return the kernel files that variants set and the user allowed by name."""
    named = (path for variant in study.variants for path in variant.files if path in conditions.allowed_files)
    return tuple(dict.fromkeys(named))


def _keeping(study: Study, conditions: Conditions, store: ExperimentStore, keeper: AwakeKeeper) -> Keeping:
    """Return how to keep idle CPUs awake; a resumed experiment keeps its method. Raises: UsageError."""
    if conditions.resume:
        return keeper.again(store.load(conditions.resume).awake, is_wanted=not conditions.as_booted)
    return keeper.find(study.variants, conditions.as_booted)


def _loaded_from(cell: CellHosts, context: Context, hosts: tuple[str, ...]) -> Context:
    """Return the context with the cell file and the names of its load hosts."""
    options = {**context.options, CELL_OPTION: cell.file_name}
    return replace(context, options=options, load_hosts=(LoadHosts(0, hosts),))


def _with_fitting_design(study: Study, arena: ScratchArena, workloads: Mapping[str, Workload]) -> Study:
    """Return the study, with alternating trials if its servers do not fit into memory together.

    Also alternating where variants set kernel files that apply to the whole machine.
    Raises: MemoryProofError if one server alone does not fit.
    """
    sizes = {v.name: arena.shared_memory_bytes(v) for v in study.variants}
    available = available_memory_bytes()
    largest = max(sizes, key=sizes.__getitem__)
    _require_memory_limit(largest, sizes[largest], study, workloads)
    if sizes[largest] > _ALONE_SHARE * available:
        raise MemoryProofError(
            f"a scratch server of {largest} does not fit into free memory",
            detail=f"its shared memory takes {numbers.size(sizes[largest])}; the limit is "
            f"{numbers.share(_ALONE_SHARE)} of the {numbers.size(available)} available",
            hint="use a host with more free memory, or variants with smaller shared_buffers",
        )
    needed = sum(sizes.values())
    if study.design.kind is DesignKind.ALTERNATING:
        return study
    if files := not_shareable(study.variants):
        listed = ", ".join(map(display_name, files))
        note = (
            f"alternating trials instead of a duet, because these are machine-wide: {listed}. "
            "Small differences may be indistinguishable with this design; see the intervals"
        )
        return replace(study, design=in_trials(study.design), notes=(*study.notes, note))
    if needed <= MEMORY_SHARE * available:
        return study
    note = (
        f"alternating trials instead of a duet: {numbers.size(needed)} of shared memory for all servers "
        f"together do not fit into {numbers.share(MEMORY_SHARE)} of the {numbers.size(available)} available"
    )
    return replace(study, design=in_trials(study.design), notes=(*study.notes, note))


def _require_memory_limit(
    variant: str, size_bytes: int, study: Study, workloads: Mapping[str, Workload]
) -> None:
    """Raise MemoryProofError if a server does not fit into the memory limit of a workload."""
    limits = [workloads[name].server_memory_bytes for name in study.workloads]
    smallest = min((limit for limit in limits if limit is not None), default=None)
    if smallest is not None and size_bytes > _ALONE_SHARE * smallest:
        raise MemoryProofError(
            f"the server of {variant} does not fit into its memory limit of {numbers.size(smallest)}",
            detail=f"its shared memory takes {numbers.size(size_bytes)}; at most "
            f"{numbers.share(_ALONE_SHARE)} of the limit are allowed",
            hint="choose smaller shared_buffers",
        )


def _require_generators(study: Study, arena: ScratchArena, workloads: Mapping[str, Workload]) -> None:
    """Find the programs that issue the load, before data is loaded. Raises: GeneratorMissingError.

    Programs on load hosts were checked when the hosts were reached.
    """
    for generator in dict.fromkeys(workloads[name].generator for name in study.workloads):
        if not arena.loads.placement.takes_jobs(generator):
            arena.loads.find_generator(generator)


def _require_disk(study: Study, arena: ScratchArena, workloads: Mapping[str, Workload]) -> None:
    """Raise StorageError if the workloads' data will not fit on the disk."""
    needed_bytes = max(workloads[name].disk_bytes or 0 for name in study.workloads)
    arena.workspace.require_free(
        needed_bytes,
        f"a server of {study.name}",
        hint="choose a smaller --preset or fewer --rows, or set PGDYNO_HOME to a directory on a larger disk",
    )
