"""The use case ``profile --simulate``: run a session on a simulated processor, in addition to the account.

Counts instructions, cache misses and branches of a workload's transactions, and the addresses of the code
that they execute. Every simulation runs twice from the same data, to show its repeatability.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from pgdyno.base.errors import DataDirectoryError, PgdynoError, ServerError, UsageError
from pgdyno.base.facts import Unknown
from pgdyno.base.ports import Progress
from pgdyno.host.files.tree import Tree
from pgdyno.host.machine.cpu import read_caches
from pgdyno.host.tracing.valgrind import Valgrind, find_valgrind, unknown_instruction
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.untrusted_file import read_own_end
from pgdyno.profile.callgrind import SimulatedRun, of_simulation
from pgdyno.profile.reading.data_miss_tracing import data_misses, require_traceable
from pgdyno.profile.reading.layouts import named_functions, simulated_layout
from pgdyno.profile.reading.profile import ProfileRequest, profile
from pgdyno.profile.reading.session_traces import SessionToTrace
from pgdyno.profile.reading.simulated_sessions import simulated_run
from pgdyno.profile.records.microarchitecture import DataMisses, Microarchitecture, TextLayout
from pgdyno.profile.records.profile_record import TransactionProfile
from pgdyno.profile.simulated_caches import SimulatedCaches, simulated_caches

_REPEATS = 2
_MOST_CHARACTERS = 300  # of an error's detail in a note
_UNDER_VALGRIND = {
    "huge_pages": "off",  # not supported by valgrind
    "autovacuum": "off",  # it would start at a different transaction each time
    "checkpoint_timeout": "1d",  # after a checkpoint, changed pages get full-page images in WAL again
}


@dataclass(frozen=True)
class SimulatedProcessor:
    """A simulator and its caches; ``like`` is a run that sets the number of transactions."""

    valgrind: Valgrind
    caches: SimulatedCaches
    like: SimulatedRun | None = None


@dataclass(frozen=True)
class Simulation:
    """A simulated processor's figures, the executed code, and the data misses.

    ``run`` is the first of the simulation's runs.
    """

    run: SimulatedRun
    figures: Microarchitecture
    layout: TextLayout | None
    data_misses: DataMisses | None


def profile_and_simulate(
    request: ProfileRequest, progress: Progress, find: Callable[[], Valgrind | None] = find_valgrind
) -> tuple[TransactionProfile, ...]:
    """Profile a workload, then simulate it, variant by variant.

    Raises: UsageError without a simulator; like profiling and simulating.
    """
    valgrind = _require(find())
    found = profile(request, progress)
    simulations: list[Simulation] = []
    for variant in request.variants:
        like = simulations[0].run if simulations else None
        simulations.append(_simulate(valgrind, request, variant, progress, like))
    return tuple(map(_with_simulation, found, simulations))


def _with_simulation(found: TransactionProfile, simulation: Simulation) -> TransactionProfile:
    layouts = (simulation.layout,) if simulation.layout else ()
    return replace(
        found,
        simulated=simulation.figures,
        data_misses=simulation.data_misses,
        layouts=(*found.layouts, *layouts),
    )


def _require(found: Valgrind | None) -> Valgrind:
    """Return the installed valgrind. Raises: UsageError if it is None."""
    if found is None:
        raise UsageError(
            "--simulate requires valgrind, which is not installed",
            hint="install the package valgrind: apt-get install valgrind, dnf install valgrind",
        )
    return found


def _simulate(
    valgrind: Valgrind,
    request: ProfileRequest,
    variant: Variant,
    progress: Progress,
    like: SimulatedRun | None,
) -> Simulation:
    """Simulate a workload's transactions on a variant's scratch server; the run ``like`` sets their number.

    Raises: ServerError for a program with instructions that valgrind does not support; like starting servers
    and issuing loads.
    """
    workload, installation, seed = request.workload, request.installation, request.design.seed
    plain = for_valgrind(variant)
    caches = simulated_caches(read_caches(Tree()))
    with open_scratch_arena(installation, (plain,), progress, is_isolated=False, is_timed=False) as arena:
        progress.step(f"preparing the data of {variant.name}")
        arena.load(plain, workload.data_set)
        progress.step(f"simulating {workload.name} on {variant.name}")
        processor = SimulatedProcessor(valgrind, caches, like)
        runs = simulated_runs(arena, plain, workload, seed, processor, progress)
        progress.step(f"tracing {workload.name} on {variant.name}")
        program = Path(arena.installation_of(plain).program("postgres")).resolve()
        functions = named_functions(program, runs[0].counts)
        traced = SessionToTrace(workload, seed, caches, runs[0].instructions, program, functions)
        misses = traced_misses(arena, plain, traced, valgrind)
    return _simulation(valgrind, caches, runs, program, misses)


def for_valgrind(variant: Variant) -> Variant:
    """Return a variant adapted to run under valgrind; kernel files are not changed."""
    own = {key: value for key, value in variant.settings.items() if key not in variant.files}
    return replace(variant, settings={**own, **_UNDER_VALGRIND})


def simulated_runs(
    arena: ScratchArena,
    variant: Variant,
    workload: Workload,
    seed: int,
    processor: SimulatedProcessor,
    progress: Progress,
) -> list[SimulatedRun]:
    """Return equal runs of a workload's sessions, each on a fresh server. Raises: like ``_simulate``."""
    directory = _own_directory(arena, "simulated")
    under = replace(arena, under=processor.valgrind.simulating(directory, processor.caches.options))
    runs: list[SimulatedRun] = []
    try:
        for repeat in range(_REPEATS):
            progress.step(f"simulating, run {repeat + 1} of {_REPEATS}")
            like = runs[0] if runs else processor.like
            runs.append(simulated_run(under, variant, workload, seed, directory, like))
    except PgdynoError as error:
        explain(arena.loads.scratch, processor.valgrind, error)
        raise
    return runs


def _own_directory(arena: ScratchArena, name: str) -> Path:
    """Create a directory that the servers' account owns."""
    directory = arena.loads.scratch / name
    directory.mkdir(mode=0o700)
    arena.workspace.account.own(directory)
    return directory


def traced_misses(
    arena: ScratchArena, variant: Variant, traced: SessionToTrace, valgrind: Valgrind
) -> DataMisses | Unknown:
    """Return data misses by structure; Unknown on an error, since the other results do not need them."""
    try:
        room_bytes = shutil.disk_usage(arena.loads.scratch).free
        caches = require_traceable(traced, has_tracer=valgrind.has_tracer, room_bytes=room_bytes)
        directory = _own_directory(arena, "traced")
        under = replace(arena, under=valgrind.tracing(directory))
        return data_misses(under, variant, traced, caches, directory)
    except PgdynoError as error:
        return unknown_misses(error)


def unknown_misses(error: PgdynoError) -> Unknown:
    """Return an error's message and detail as the reason for missing data misses."""
    words = " ".join((error.detail or "").split())
    end = f"… {words[-_MOST_CHARACTERS:]}" if len(words) > _MOST_CHARACTERS else words  # of a server's log
    detail = f" ({end})" if end else ""
    return Unknown(f"simulated: no data misses by structure, because {error.message}{detail}")


def _simulation(
    valgrind: Valgrind,
    caches: SimulatedCaches,
    runs: Sequence[SimulatedRun],
    program: Path,
    misses: DataMisses | Unknown,
) -> Simulation:
    source = f"simulated: callgrind {valgrind.version}" + (f", {caches.text}" if caches.text else "")
    layout = simulated_layout(program, runs[0].counts, source)
    if isinstance(misses, Unknown):
        figures = of_simulation(source, runs, (*caches.remarks, misses.reason))
        return Simulation(runs[0], figures, layout, None)
    return Simulation(runs[0], of_simulation(source, runs, caches.remarks), layout, misses)


def explain(scratch: Path, valgrind: Valgrind, error: PgdynoError) -> None:
    """Raise ServerError if a server's log shows an instruction that valgrind does not support."""
    for log in scratch.glob("*.log"):
        try:
            words = unknown_instruction(read_own_end(log))
        except (DataDirectoryError, FileNotFoundError):
            continue
        if words:
            _refuse(valgrind, words, error)


def _refuse(valgrind: Valgrind, words: str, error: PgdynoError) -> NoReturn:
    raise ServerError(
        f"valgrind {valgrind.version} does not support an instruction of this server",
        detail=words,
        hint="simulate a build for an older processor: pgdyno build --portable x86-64-v3, or x86-64-v2",
    ) from error
