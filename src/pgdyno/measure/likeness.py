"""Compare captured workloads with their originals on the baseline's server, before any is measured.

For this, the server counts statements with pg_stat_statements, as the original server did; measured servers
do not. The extension is in a separate database, from which all counts are visible: a copy may contain code
of its owners.

Compare servers' answers to the same statements of a captured workload, before it is measured.

A server that gives different answers is not faster. Only read-only statements are compared, without the order
of their rows. If another plan may answer otherwise (LIMIT among equal rows, array_agg), only the number of
rows is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace

from pgdyno.base import numbers
from pgdyno.base.errors import MeasurementError, ServerError, ServerStartError
from pgdyno.base.ports import Progress
from pgdyno.load.timed_run import TimedRun
from pgdyno.measure.arenas.arena import Arena
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.statement_plans import sampled_statements
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.model.experiments.experiment import Design, Experiment
from pgdyno.model.experiments.failures import failures_text, require_few
from pgdyno.model.experiments.likeness import LEAST_MEASURED, Likeness, likeness_words
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.inspection.named_objects import read_writing_functions
from pgdyno.postgres.sampling.prepared_plans import ResultChecksum, result_checksums
from pgdyno.postgres.sampling.statement_statistics import find_statement_statistics
from pgdyno.postgres.statement_counts import difference
from pgdyno.postgres.statements import PreparedStatement
from pgdyno.workload.capture.likeness import ReplayedLoad, likeness, seen_by_name
from pgdyno.workload.capture.statements import depends_on_order, reads_alone
from pgdyno.workload.column_draws import read_draws

_OURS = "postgres"  # a database of the scratch server that never holds a copy
_LIBRARY = "pg_stat_statements"
_MOST_GAPS = 8
_COUNTED_S = 10.0  # arbitrary: thousands of transactions of most workloads
_COUNTING = {"shared_preload_libraries": _LIBRARY, f"{_LIBRARY}.track": "top"}


def likened(
    experiment: Experiment,
    arena: Arena,
    workloads: Sequence[Workload],
    progress: Progress,
    *,
    accepts_unlike: bool,
) -> Experiment:
    """Return the experiment with the likeness of each captured workload, or a note why it is unknown.

    Raises: ServerError, GeneratorFailedError; MeasurementError if a replay is too unlike its original, unless
    ``accepts_unlike``.
    """
    found, notes = dict(experiment.likenesses), list(experiment.notes)
    [baseline] = [one for one in experiment.variants if one.name == experiment.baseline]
    counting = replace(baseline, settings={**baseline.settings, **_COUNTING})
    for workload in workloads:
        if workload.captured is None or workload.rate_tps is not None or workload.captured.name in found:
            continue  # at a rate: compared in an earlier experiment; in a grid: many cells share it
        progress.step(f"comparing {workload.captured.name} with its original")
        failed: Iterable[str] = ()
        try:
            with _arm(arena, counting, workload) as arm:
                of_draws = _of_draws(arena, arm, workload)
                like, run = _counted(arena, arm, workload, experiment.design)
            if like.is_another_workload and not accepts_unlike:
                raise _unlike(workload, like)
            found[workload.captured.name] = like
            failed = _failures(workload, run)
        except ServerStartError as error:
            if _LIBRARY not in (error.detail or ""):
                raise
            notes.append(f"likeness of {workload.name} to the original unknown: the server has no {_LIBRARY}")
            with _arm(arena, baseline, workload) as arm:
                of_draws = _of_draws(arena, arm, workload)
        notes += (*_gaps(workload.captured), *of_draws, *failed, *_invariants(workload.captured))
    return replace(experiment, likenesses=found, notes=tuple(dict.fromkeys(notes)))


def _unlike(workload: Workload, found: Likeness) -> MeasurementError:
    return MeasurementError(
        f"the replay of {workload.name} is too unlike the original",
        detail=f"{likeness_words(found)}; at least {LEAST_MEASURED} is required",
        hint="pgdyno workload replay lists the statements that differ; capture it from a complete log, or "
        "add --unlike to measure it nevertheless",
    )


def _gaps(workload: CapturedWorkload) -> Iterator[str]:
    """Yield the first notes of a workload: a verdict on its replay rests on these assumptions."""
    yield from (f"{workload.name}: {note}" for note in workload.notes[:_MOST_GAPS])
    if len(workload.notes) > _MOST_GAPS:
        yield f"{workload.name}: {len(workload.notes) - _MOST_GAPS} further notes: see its file"


def _invariants(workload: CapturedWorkload) -> Iterator[str]:
    if workload.invariants:
        names = ", ".join(one.name for one in workload.invariants)
        yield f"invariants of {workload.name} are checked on each server before and after its load: {names}"


def _failures(workload: Workload, run: TimedRun) -> Iterator[str]:
    if run.failures:
        yield (
            f"{numbers.share(run.failed_share)} of the transactions of {workload.name} failed on the copy "
            f"({failures_text(run.failures)}); rates do not include them"
        )


@contextmanager
def _arm(arena: Arena, variant: Variant, workload: Workload) -> Iterator[Arm]:
    """Provide a started server with a copy of the workload's data."""
    arena.restore([variant], [0], workload.data_set)
    try:
        with arena.arms([variant], [0], workload.data_set, workload.server_memory_bytes) as (arm,):
            yield arm
    finally:
        arena.discard([variant], [0], workload.data_set)


def _of_draws(arena: Arena, arm: Arm, workload: Workload) -> tuple[str, ...]:
    """Return notes on columns of the copy without values to draw."""
    assert workload.captured is not None  # noqa: S101 — checked by the caller
    with closing(arena.loads.connect(arm, workload)) as session:
        _, notes = read_draws(session, workload.captured)
    return tuple(f"{workload.name}: {note}" for note in notes)


def _counted(arena: Arena, arm: Arm, workload: Workload, design: Design) -> tuple[Likeness, TimedRun]:
    assert workload.captured is not None  # noqa: S101 — checked by the caller
    with arm.losses_explained(), closing(arm.server.connect(_OURS)) as session:
        session.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    with arm.losses_explained(), closing(connect(arm.server.dsn)) as connection:
        statistics = find_statement_statistics(connection, database=arm.database)
        other = replace(design, seed=design.seed + 1)  # equal seeds would make the same unique texts twice
        arena.loads.run_alone(arm, workload, other, design.warmup_s)
        before = statistics.read()
        run = arena.loads.run_alone(arm, workload, design, _COUNTED_S)
        require_few(arm.variant.name, run.transactions, run.failures, arm.server.last_log_lines())
        counted = difference(before, statistics.read())
        if counted is None:
            raise ServerError("pg_stat_statements was reset while statements were counted")
        seen = seen_by_name(workload.captured, statistics.texts(counted.seen), counted.seen)
    failed = sum(one.count for one in run.failures)
    sessions = workload.captured.clients, workload.clients or design.clients
    load = ReplayedLoad(seen, run.transactions, failed, sessions)
    return likeness(workload.captured, load), run


_SAMPLES = 5  # of each statement: arbitrary, takes a few milliseconds
_Answers = Mapping[str, tuple[ResultChecksum | None, ...]]


def answers_compared(
    experiment: Experiment, arena: Arena, workloads: Sequence[Workload], progress: Progress
) -> Experiment:
    """Return the experiment with notes on statements that a variant answers differently than the baseline.

    Raises: errors of servers and generators.
    """
    notes: list[str] = []
    for workload in workloads:
        is_cell = workload.cell is not None or workload.rate_tps is not None  # compared for another workload
        if workload.captured is not None and not is_cell and len(experiment.variants) > 1:
            progress.step(f"comparing answers to statements of {workload.name}")
            notes += _notes(experiment, arena, workload)
    return replace(experiment, notes=tuple(dict.fromkeys((*experiment.notes, *notes))))


def _notes(experiment: Experiment, arena: Arena, workload: Workload) -> Iterator[str]:
    baseline = next(one for one in experiment.variants if one.name == experiment.baseline)
    samples: list[PreparedStatement] = []
    expected = _answers(arena, baseline, workload, samples)
    again = _answers(arena, baseline, workload, samples)
    # Answers with now() and the like vary between runs; failures carry no information.
    stable = {
        name: answers
        for name, answers in expected.items()
        if any(answers) and not _differ(answers, again[name])
    }
    for variant in experiment.variants:
        if variant is baseline:
            continue
        found = _answers(arena, variant, workload, samples)
        if differing := [name for name, answers in stable.items() if _differ(answers, found[name])]:
            yield (
                f"{', '.join(differing)} of {workload.name}: answered otherwise by {variant.name} than by "
                f"{baseline.name}, with the same rows and parameters"
            )
    compared = "one statement" if len(stable) == 1 else f"{len(stable)} statements"
    yield f"answers to {compared} of {workload.name} were compared on all servers before measuring"


def _answers(
    arena: Arena, variant: Variant, workload: Workload, samples: list[PreparedStatement]
) -> _Answers:
    """Return a checksum for each call of each statement; fill ``samples`` if empty."""
    arena.restore([variant], [0], workload.data_set)
    try:
        with arena.arms([variant], [0], workload.data_set, workload.server_memory_bytes) as (arm,):
            return _answers_of(arena, arm, workload, samples)
    finally:
        arena.discard([variant], [0], workload.data_set)


def _answers_of(arena: Arena, arm: Arm, workload: Workload, samples: list[PreparedStatement]) -> _Answers:
    if not samples:
        with closing(arena.loads.connect(arm, workload)) as connection:
            found = sampled_statements(connection, workload, arena.loads.find_driver())
            writing = read_writing_functions(connection)
        samples += [one for one in found if reads_alone(one.sql, writing)]
    with closing(arena.loads.connect(arm, workload)) as connection:
        return {one.name: _comparable(one, result_checksums(connection, one, _SAMPLES)) for one in samples}


def _comparable(
    statement: PreparedStatement, answers: Sequence[ResultChecksum | None]
) -> tuple[ResultChecksum | None, ...]:
    """Return the comparable part of answers: only the number of rows if the order of reading decides them."""
    if not depends_on_order(statement.sql):
        return tuple(answers)
    return tuple(None if one is None else replace(one, checksum=0) for one in answers)


def _differ(first: Sequence[ResultChecksum | None], second: Sequence[ResultChecksum | None]) -> bool:
    """Whether two servers' answers differ, except for calls that failed or took too long."""
    return any(None not in pair and pair[0] != pair[1] for pair in zip(first, second, strict=True))
